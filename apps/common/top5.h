// The text of a top-5 accuracy.
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <string>

namespace tw {

/// `, top-5 0.9876` after a separator; empty for less than ten classes, of which it says nothing.
inline std::string top5_text(const char* separator, double share, int64_t classes) {
  return classes < 10 ? "" : fmt::format("{}top-5 {:.4f}", separator, share);
}

}  // namespace tw
