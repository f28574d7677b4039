// CUDA C++ for a CPU compiler: the parts of the language and its library that our kernels use.
// Included before every .cu file that is built for the emulator.
#pragma once

#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulator/block.h"
#include "tests/emulator/cooperative.h"
#include "tests/emulator/memory.h"
#include "tests/emulator/stream.h"

#undef __shared__
#define __shared__ static thread_local  // a block runs on one CPU thread
#undef __launch_bounds__
#define __launch_bounds__(...)

using std::isfinite;

inline void __syncthreads() { tw::emulator::barrier(false); }
inline int __syncthreads_count(int predicate) { return tw::emulator::barrier(predicate != 0); }
inline void __threadfence() {}
inline void __syncwarp() { tw::emulator::exchange(~0u, 0); }
/// Kernels call it in loops that wait for another block.
inline void __nanosleep(unsigned) { tw::emulator::give_way(); }

template <class T>
T __shfl_sync(unsigned mask, T value, int lane) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = tw::emulator::exchange(mask, bits)[static_cast<size_t>(lane) % 32];
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int distance) {
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  return __shfl_sync(mask, value, static_cast<int>(thread % 32) ^ distance);
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  const auto& values = tw::emulator::exchange(mask, predicate != 0);
  unsigned ballot = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1 && values[lane] != 0) ballot |= 1u << lane;
  return ballot;
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
  const auto& values = tw::emulator::exchange(mask, value);
  unsigned sum = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    if (mask >> lane & 1) sum += static_cast<unsigned>(values[lane]);
  return sum;
}

inline int __popc(unsigned bits) { return std::popcount(bits); }
inline int __ffs(int bits) {
  return bits == 0 ? 0 : std::countr_zero(static_cast<unsigned>(bits)) + 1;
}
inline float __uint_as_float(unsigned bits) { return std::bit_cast<float>(bits); }
template <class T>
T __ldcg(const T* address) {
  return *address;
}

// atomic, since one thread of a block runs at a time
template <class T, class Body>
T read_modify_write(T* address, const Body& body) {
  const T old = *address;
  *address = body(old);
  return old;
}
template <class T>
T atomicAdd(T* address, T value) {
  return read_modify_write(address, [&](T old) { return old + value; });
}
template <class T>
T atomicMin(T* address, T value) {
  return read_modify_write(address, [&](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* address, T value) {
  return read_modify_write(address, [&](T old) { return old | value; });
}
template <class T>
T atomicCAS(T* address, T expected, T value) {
  return read_modify_write(address, [&](T old) { return old == expected ? value : old; });
}
inline unsigned atomicInc(unsigned* address, unsigned most) {
  return read_modify_write(address, [&](unsigned old) { return old >= most ? 0 : old + 1; });
}

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

/// Whether a kernel may dereference this argument. Does not look at pointers inside structures.
template <class T>
bool is_device_accessible(const T& argument) {
  if constexpr (std::is_pointer_v<T>)
    return argument == nullptr || tw::emulator::locate(argument).place != tw::emulator::Place::host;
  else
    return true;
}

/// As in the CUDA runtime; kernels are CPU functions.
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  constexpr size_t kMost = 4096;  // bytes of parameters, on every GPU; newer ones accept more
  if ((sizeof(Parameters) + ... + 0) > kMost) return tw::emulator::report(cudaErrorInvalidValue);
  const std::tuple<Parameters...> copies(std::forward<Arguments>(arguments)...);
  const bool reached =
      std::apply([](const auto&... each) { return (is_device_accessible(each) && ...); }, copies);
  if (!reached) return tw::emulator::report(cudaErrorIllegalAddress);
  const dim3 grid = config->gridDim, block = config->blockDim;
  bool cooperative = false;
  for (unsigned a = 0; a < config->numAttrs; ++a)
    cooperative |= config->attrs[a].id == cudaLaunchAttributeCooperative;
  constexpr unsigned kHeld = tw::emulator::kProcessors * tw::emulator::kBlocksOfProcessor;
  if (cooperative && (tw::emulator::refuse_cooperative() || grid.x * grid.y * grid.z > kHeld))
    return tw::emulator::report(cudaErrorCooperativeLaunchTooLarge);
  const auto run = cooperative ? tw::emulator::run_cooperative_grid : tw::emulator::run_grid;
  return tw::emulator::launch(config->stream, grid, block,
                              [=] { run(grid, block, [&] { std::apply(kernel, copies); }); });
}
