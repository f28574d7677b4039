// SIMD: how kernels of the CPU are compiled for several instruction sets and called.
//
// A kernel is a function in a namespace TW_CPU. Its file names itself as TW_KERNELS, includes
// engine/core/each_instruction_set.h, which compiles the part inside `#ifdef TW_CPU` once for each
// set, and calls TW_KERNEL(function)(arguments...), which takes the set of this process. Templates,
// lambdas and intrinsics of the set (`#ifdef __AVX512F__`) work there as anywhere. This is the
// method of Highway's foreach_target.h. Everything outside that part, library templates included,
// is compiled for every CPU of the build's target.
#pragma once

#include <utility>

#include "engine/core/instruction_set.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TW_KERNEL(function)                      \
  [](auto&&... arguments) -> decltype(auto) {    \
    switch (::tw::instruction_set()) {           \
      case ::tw::InstructionSet::v4:             \
        return v4::function(arguments...);       \
      case ::tw::InstructionSet::v3:             \
        return v3::function(arguments...);       \
      default:                                   \
        return baseline::function(arguments...); \
    }                                            \
  }
#else
#define TW_KERNEL(function) \
  [](auto&&... arguments) -> decltype(auto) { return baseline::function(arguments...); }
#endif

/// Always inlined, so that the loop inside is compiled for its caller's instruction set.
#define TW_INLINE inline __attribute__((always_inline))
