// Text of any bytes, such as names of files, as UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace tw {

/// The text with each byte that is not part of UTF-8 written as `\xe9`, so that JSON and CSV files
/// can hold it.
std::string as_utf8(std::string_view text);

/// The same, also with the bytes of control characters but those in `keep`, so that a terminal
/// shows them and does not act on them.
std::string printable(std::string_view text, std::string_view keep = {});

}  // namespace tw
