// DispatchTable: the implementations ("bodies") of one op, one per device. Each body registers
// itself in its own source file, so a build without CUDA needs no stubs.
#pragma once

#include <array>
#include <utility>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace tw {

template <class Signature>
class DispatchTable;

template <class Result, class... Args>
class DispatchTable<Result(Args...)> {
 public:
  using Body = Result (*)(Args...);

  /// `op`: name in error messages. Declare tables `constinit`: they must be initialised before the
  /// static initialisers that add bodies run.
  constexpr explicit DispatchTable(const char* op) : op_(op) {}

  bool add(Device device, Body body) {
    bodies_[static_cast<size_t>(device)] = body;
    return true;
  }
  bool has(Device device) const { return bodies_[static_cast<size_t>(device)] != nullptr; }

  /// Calls the body of `device`; throws UserError when this build has none.
  Result operator()(Device device, Args... args) const {
    const Body body = bodies_[static_cast<size_t>(device)];
    check(body != nullptr, "[{}] this build has no {} body (built without CUDA?)", op_,
          name(device));
    return body(std::forward<Args>(args)...);
  }

 private:
  const char* op_;
  std::array<Body, kDeviceCount> bodies_{};
};

}  // namespace tw
