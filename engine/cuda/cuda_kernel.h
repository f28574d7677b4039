// Shared parts of CUDA kernels: elements as floats, 16-byte packs, loops over elements.
// Included by .cu files and headers *_cuda.h only.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/cuda/cuda.h"

namespace tw::cuda {

inline constexpr int kThreads = 256;
/// Maximum number of blocks of a grid-stride loop: fills any current GPU several times.
inline constexpr int64_t kMaxBlocks = 2048;

__device__ inline float load(float element) { return element; }
__device__ inline float load(bf16 element) {
  return __uint_as_float(static_cast<uint32_t>(element.bits) << 16);
}
__device__ inline float load(uint8_t element) { return element; }
__device__ inline void store(float& element, float value) { element = value; }
/// Rounds once, to nearest even. Every NaN becomes the canonical quiet NaN.
__device__ inline void store(bf16& element, float value) {
#ifdef __CUDA_ARCH__
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(element.bits) : "f"(value));
#else
  element = bf16(value);  // in the emulator
#endif
}

/// Elements of one memory access.
template <class T, int kWide>
struct alignas(sizeof(T) * kWide) Pack {
  T values[kWide];
};

/// Elements of T in 16 bytes.
template <class T>
inline constexpr int kPack = static_cast<int>(16 / sizeof(T));

/// First index of a thread in a grid-stride loop, and its step.
__device__ inline int64_t first_index() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t index_step() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

/// a / b of numbers below 2^32. A division of 64 bits takes several times as long.
__device__ inline int64_t divide(int64_t a, int64_t b) {
  return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
}
/// Checks that the indices of a kernel that calls divide() are below 2^32.
inline void expect_32_bits(const char* op, int64_t n) {
  check(n <= int64_t{UINT32_MAX}, "[{}] {} elements; a GPU takes up to {}", op, n, UINT32_MAX);
}

inline unsigned blocks_for(int64_t n) {
  return static_cast<unsigned>(std::clamp<int64_t>((n + kThreads - 1) / kThreads, 1, kMaxBlocks));
}

/// Queues kernel(arguments...) on the rank's stream.
template <class... Parameters, class... Arguments>
void launch(const Context& ctx, const char* op, void (*kernel)(Parameters...), dim3 grid,
            dim3 block, const Arguments&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.stream = stream(ctx);
  expect(cudaLaunchKernelEx(&config, kernel, arguments...), op);
}

template <class Body>
__global__ void __launch_bounds__(kThreads) for_each_kernel(int64_t n, Body body) {
  for (int64_t i = first_index(); i < n; i += index_step()) body(i);
}

/// Calls body(i), a functor with a __device__ call operator, for 0 <= i < n.
template <class Body>
void for_each(const Context& ctx, const char* op, int64_t n, const Body& body) {
  if (n == 0) return;
  launch(ctx, op, for_each_kernel<Body>, blocks_for(n), kThreads, n, body);
}

template <int kWide, class Body, class Out, class... In>
__device__ Pack<Out, kWide> map_pack(const Body& body, int64_t first,
                                     const Pack<In, kWide>&... in) {
  Pack<Out, kWide> out;
#pragma unroll
  for (int j = 0; j < kWide; ++j) store(out.values[j], body(first + j, load(in.values[j])...));
  return out;
}

template <int kWide, class Body, class Out, class... In>
__global__ void __launch_bounds__(kThreads)
    map_kernel(int64_t n, Body body, Out* out, const In*... in) {
  const int64_t packs = n / kWide;
  for (int64_t p = first_index(); p < packs; p += index_step())
    reinterpret_cast<Pack<Out, kWide>*>(out)[p] = map_pack<kWide, Body, Out, In...>(
        body, p * kWide, reinterpret_cast<const Pack<In, kWide>*>(in)[p]...);
  for (int64_t i = packs * kWide + first_index(); i < n; i += index_step())
    store(out[i], body(i, load(in[i])...));
}

template <class T>
bool aligned_for(const T* pointer, int wide) {
  return reinterpret_cast<uintptr_t>(pointer) % (sizeof(T) * static_cast<size_t>(wide)) == 0;
}

/// out[i] = body(i, in[i]...) as floats, for 0 <= i < n; out may be one of the inputs.
template <class Body, class Out, class... In>
void map(const Context& ctx, const char* op, int64_t n, const Body& body, Out* out,
         const In*... in) {
  if (n == 0) return;
  constexpr int kWide = std::min({kPack<Out>, kPack<In>...});
  if ((aligned_for(out, kWide) && ... && aligned_for(in, kWide)))
    launch(ctx, op, map_kernel<kWide, Body, Out, In...>, blocks_for(n / kWide), kThreads, n, body,
           out, in...);
  else
    launch(ctx, op, map_kernel<1, Body, Out, In...>, blocks_for(n), kThreads, n, body, out, in...);
}

}  // namespace tw::cuda
