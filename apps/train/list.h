// What `train --list` prints.
#pragma once

#include <string>

namespace tw {

/// Every model, data set, sparsifier, selector, exchange, collective and group of settings: name
/// and help in columns, and below each its `--set` keys with defaults and choices.
std::string list_text();

}  // namespace tw
