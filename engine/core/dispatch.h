// DispatchTable: one op, one body per device. A body adds itself from its own file, so a build
// without CUDA has no stubs: it simply lacks the body and says so.
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

  /// Declare as `constinit`, so that it exists before any body adds itself.
  constexpr explicit DispatchTable(const char* op) : op_(op) {}

  bool add(Device device, Body body) {
    bodies_[static_cast<size_t>(device)] = body;
    return true;
  }
  bool has(Device device) const { return bodies_[static_cast<size_t>(device)] != nullptr; }

  /// Calls the body of `device`; throws when this build has none.
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
