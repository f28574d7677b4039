// Engines of the emulated cuDNN.
#pragma once

#include <cstdint>
#include <vector>

namespace tw::emulator {

enum class Engine : uint8_t {
  runs,
  refuses,         ///< proposed, but fails to run
  breaks_capture,  ///< runs, but makes a call that a capture does not allow
  rounds,          ///< runs, but rounds the operands as TF32 does
};

/// The engines that the heuristics propose for every convolution, best first; a test may replace
/// them while no other thread uses cuDNN.
std::vector<Engine>& engines();

}  // namespace tw::emulator
