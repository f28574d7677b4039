// SIMD: how kernels of the CPU are compiled for several instruction sets and called.
//
// A kernel is a function in a namespace TW_CPU. Its file names itself as TW_KERNELS, includes
// engine/core/each_instruction_set.h, which compiles the part inside `#ifdef TW_CPU` once for each
// set, and calls TW_KERNEL(function, arguments...), which takes the set of this process. Templates,
// lambdas and intrinsics of the set (`#ifdef __AVX512F__`) work there as anywhere. This is the
// method of Highway's foreach_target.h. Everything outside that part, library templates included,
// is compiled for every CPU of the build's target.
#pragma once

#include "engine/core/instruction_set.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TW_KERNEL(function, ...)                \
  [&]() -> decltype(auto) {                     \
    switch (::tw::instruction_set()) {          \
      case ::tw::InstructionSet::v4:            \
        return v4::function(__VA_ARGS__);       \
      case ::tw::InstructionSet::v3:            \
        return v3::function(__VA_ARGS__);       \
      default:                                  \
        return baseline::function(__VA_ARGS__); \
    }                                           \
  }()
#else
#define TW_KERNEL(function, ...) baseline::function(__VA_ARGS__)
#endif

/// Always inlined, so that the loop inside is compiled for its caller's instruction set.
#define TW_INLINE inline __attribute__((always_inline))
