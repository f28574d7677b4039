// The instruction sets that kernels are compiled for, and the one of this process.
#pragma once

#include <string_view>

namespace tw {

/// Levels of x86-64 (System V ABI): baseline has SSE2, v3 AVX2 and FMA, v4 AVX-512. Other
/// processors have the baseline of the build's target only.
enum class InstructionSet { baseline, v3, v4 };

/// The best set of this CPU, or the lower one that the environment variable THINWIRE_CPU names;
/// oneDNN is held to the same. The answer stays. Throws UserError if THINWIRE_CPU is not a name, or
/// names a set that the CPU lacks: programs ask before they compute.
InstructionSet instruction_set();

/// x86-64, x86-64-v3 or x86-64-v4; `baseline` on other processors.
std::string_view name(InstructionSet set);

}  // namespace tw
