// A stack of its own, on which a function runs until it hands control back.
#pragma once

#include <cstddef>
#include <memory>

namespace tw::emulator {

class Fiber {
 public:
  /// `body` may not return.
  explicit Fiber(void (*body)());
  /// Runs the body until it suspends.
  void resume();
  /// Goes back to who resumed it; for the body.
  void suspend();

 private:
  static constexpr size_t kStack = size_t{256} << 10;

  std::unique_ptr<std::byte[]> stack_{new std::byte[kStack]};
  std::byte* top_;               ///< of its stack, while it waits
  std::byte* caller_ = nullptr;  ///< the same of who resumed it
};

}  // namespace tw::emulator
