// The CPU: its name, and the features that decide between data types.
#pragma once

#include <string>

namespace tw {

/// The name that the CPU gives itself; `unknown model` if /proc/cpuinfo tells none.
std::string cpu_model();

/// True when the CPU has the parts of AVX-512 that oneDNN calls avx512_core. THINWIRE_CPU
/// (engine/core/instruction_set.h) and ONEDNN_MAX_CPU_ISA can disable it, and the next two.
bool cpu_has_avx512();

/// True when the CPU multiplies bf16 in hardware (AVX512_BF16 or AMX).
bool cpu_has_bf16();

/// True when the CPU has AMX tiles for bf16, several times faster than its vector units.
bool cpu_has_amx();

/// Version of oneDNN, e.g. `2.6.3`. Results of different versions may differ in bits.
std::string onednn_version();

}  // namespace tw
