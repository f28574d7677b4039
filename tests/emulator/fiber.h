// Fiber: a function on its own stack, which can suspend and be resumed.
#pragma once

#include <cstddef>
#include <memory>

namespace tw::emulator {

class Fiber {
 public:
  /// `body` must not return.
  explicit Fiber(void (*body)());
  /// Runs the body until it calls suspend().
  void resume();
  /// Called by the body: returns from resume().
  void suspend();

 private:
  static constexpr size_t kStack = size_t{256} << 10;

  std::unique_ptr<std::byte[]> stack_{new std::byte[kStack]};
  std::byte* top_;               ///< stack pointer while suspended
  std::byte* caller_ = nullptr;  ///< stack pointer of the caller of resume()
};

}  // namespace tw::emulator
