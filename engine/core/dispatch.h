// DispatchTable: the functions that compute one op, one per device. Each registers itself from its
// own file, so a build without CUDA needs no stubs.
#pragma once

#include <array>
#include <memory>
#include <type_traits>
#include <utility>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace tw {

template <class Signature>
class DispatchTable;

template <class Result, class... Args>
class DispatchTable<Result(Args...)> {
 public:
  using Function = Result (*)(Args...);

  /// `op`: name in error messages. Define tables `inline constinit`: they must be initialised
  /// before the static initialisers that call add().
  constexpr explicit DispatchTable(const char* op) : op_(op) {}

  bool add(Device device, Function function) {
    functions_[static_cast<size_t>(device)] = function;
    return true;
  }
  /// Adds the construction of a Made, from the arguments if it takes them.
  template <class Made>
  bool add(Device device) {
    return add(device, [](Args... args) -> Result {
      if constexpr (std::is_constructible_v<Made, Args...>)
        return std::make_unique<Made>(std::forward<Args>(args)...);
      else
        return std::make_unique<Made>();
    });
  }
  bool has(Device device) const { return functions_[static_cast<size_t>(device)] != nullptr; }

  /// Calls the function of `device`; throws UserError when this build has none.
  Result operator()(Device device, Args... args) const {
    const Function function = functions_[static_cast<size_t>(device)];
    check(function != nullptr, "[{}] this build has no {} implementation (built without CUDA?)",
          op_, name(device));
    return function(std::forward<Args>(args)...);
  }

 private:
  const char* op_;
  std::array<Function, kDeviceCount> functions_{};
};

}  // namespace tw
