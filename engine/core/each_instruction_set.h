// Includes the file TW_KERNELS once for each instruction set, with TW_CPU as the name of the set's
// namespace and with Lanes (engine/core/lanes.h) of its vectors. See engine/core/simd.h.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "engine/core/dtype.h"
#include "engine/core/simd.h"

#ifndef TW_CPU
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v4")
#define TW_CPU v4
#define TW_VECTOR_BYTES 64
#ifndef TW_HAS_LANES
#include "engine/core/lanes.h"
#endif
#include TW_KERNELS
#undef TW_CPU
#undef TW_VECTOR_BYTES
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("arch=x86-64-v3")
#define TW_CPU v3
#define TW_VECTOR_BYTES 32
#ifndef TW_HAS_LANES
#include "engine/core/lanes.h"
#endif
#include TW_KERNELS
#undef TW_CPU
#undef TW_VECTOR_BYTES
#pragma GCC pop_options

#endif

#define TW_CPU baseline
#define TW_VECTOR_BYTES 16
#ifndef TW_HAS_LANES
#include "engine/core/lanes.h"
#endif
#include TW_KERNELS
#undef TW_CPU
#undef TW_VECTOR_BYTES

#define TW_HAS_LANES
#undef TW_KERNELS
#endif
