// TW_MULTIVERSION: compiles a plain function for several instruction sets and picks one at start,
// so that one binary travels. Templates and lambdas are not cloned: hot loops are plain functions,
// or TW_INLINE templates that a plain function calls.
#pragma once

#if defined(__x86_64__) && !defined(TW_SANITIZED) && defined(__GNUC__) && !defined(__clang__)
#define TW_MULTIVERSION \
  __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TW_MULTIVERSION
#endif

/// Inlined whatever the compiler thinks, so that the loop inside is compiled with its caller's ISA.
#define TW_INLINE inline __attribute__((always_inline))
