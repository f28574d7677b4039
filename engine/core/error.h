// Errors: what is thrown, and the exit code it ends in.
#pragma once

#include <fmt/core.h>

#include <stdexcept>
#include <string>

namespace tw {

/// A user's mistake (flag, key, file, impossible combination): one line, exit code 2 on all ranks.
class UserError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The same, found by one rank while the others wait for it (a damaged file): it ends all.
class LocalUserError : public UserError {
 public:
  using UserError::UserError;
};

/// A fault while running (NaN, dead rank, full disk): a line that names the rank, exit code 1.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A fault that every rank throws in the same step (a NaN all were told of): one rank reports it.
class CollectiveFault : public Fault {
 public:
  using Fault::Fault;
};

/// Throws E with a formatted text. A text starts with its place: `[conv2d] x is (8, 0, 32, 16)`.
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

}  // namespace tw
