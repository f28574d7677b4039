// Exception types with the exit code of each, and lines on standard error.
#pragma once

#include <fmt/core.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace tw {

/// A user's mistake (flag, key, file, impossible combination): one line, exit code 2 on all ranks.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A UserError that one rank finds while others wait for it (a damaged file); ends all ranks.
class LocalUserError : public UserError {
 public:
  using UserError::UserError;
};

/// A failure at run time (dead rank, full disk): one line with the rank, exit code 1.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A Fault of a disk that is full or broken, which may pass: exit code 1 at any time.
class DiskFault : public Fault {
 public:
  using Fault::Fault;
};

/// A Fault that every rank throws in the same step (a NaN gradient); one rank reports it. A retry
/// meets it again: exit code 4.
class CollectiveFault : public Fault {
 public:
  using Fault::Fault;
};

/// Throws E with a formatted text, which starts with its source: `[conv2d] x is (8, 0, 32, 16)`.
template <class E = UserError, class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw E(fmt::vformat(text, fmt::make_format_args(args...)));
}

/// Throws E with a formatted text unless `holds`.
template <class E = UserError, class... Args>
void check(bool holds, fmt::format_string<Args...> text, Args&&... args) {
  if (!holds) [[unlikely]]
    fail<E>(text, std::forward<Args>(args)...);
}

/// Writes a line to standard error. Unlike fmt::print it does not throw, as nobody can be told that
/// this stream is closed or full.
inline void write_error_line(const std::string& text) { std::fputs((text + "\n").c_str(), stderr); }

}  // namespace tw
