// TW_MULTIVERSION: compiles a function for several instruction sets and picks one at program start,
// so one binary runs on all CPUs. Templates and lambdas are not cloned: hot loops are plain
// functions, or TW_INLINE templates called by plain functions.
#pragma once

#if defined(__x86_64__) && !defined(TW_SANITIZED) && defined(__GNUC__) && !defined(__clang__)
#define TW_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TW_MULTIVERSION
#endif

/// Compiles a function for CPUs with AVX-512; its callers ask cpu_has_avx512() before. Other
/// compilers and machines compile it for the CPU of the build's target.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define TW_AVX512 __attribute__((target("arch=x86-64-v4")))
#else
#define TW_AVX512
#endif

/// Always inlined, so that the loop inside is compiled for its caller's instruction set.
#define TW_INLINE inline __attribute__((always_inline))
