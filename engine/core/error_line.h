// Lines on standard error.
#pragma once

#include <cstdio>
#include <string>

namespace tw {

/// Writes a line to standard error. Unlike fmt::print it does not throw, as nobody can be told that
/// this stream is closed or full.
inline void write_error_line(const std::string& text) { std::fputs((text + "\n").c_str(), stderr); }

}  // namespace tw
