#include <algorithm>
#include <array>
#include <utility>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/conv2d.h"
#include "engine/ops/element.h"
#include "engine/ops/gradients_cuda.h"

namespace tw::ops {
namespace {

struct Copy {
  __device__ float operator()(int64_t, float x) const { return x; }
};
struct Add {
  __device__ float operator()(int64_t, float x, float y) const { return y + x; }
};

/// Arguments of one launch on up to kMost vectors. Each block handles kBlockElements elements of
/// one vector: replaces or increases them by those of `from`, unless that is null, and checks them.
template <class From>
struct Batch {
  static constexpr uint32_t kMost = 128, kBlockElements = 4096;
  uint32_t count = 0;
  bool add = false;
  std::array<uint32_t, kMost + 1> first_block{};
  std::array<const From*, kMost> from{};
  std::array<float*, kMost> to{};
  std::array<uint32_t, kMost> n{};
  const float* origin = nullptr;        ///< the element with index 0
  unsigned long long* first = nullptr;  ///< lowest index of a NaN or infinity; null: no check

  bool full() const { return count == kMost; }
  void push(const From* source, float* destination, int64_t elements) {
    from[count] = source;
    to[count] = destination;
    n[count] = static_cast<uint32_t>(elements);
    const auto blocks = static_cast<uint32_t>((elements + kBlockElements - 1) / kBlockElements);
    first_block[count + 1] = first_block[count] + blocks;
    ++count;
  }
};

/// A block's n elements, with kWide of them in one memory access.
template <int kWide, class From>
__device__ void finish(const Batch<From>& batch, const From* from, float* to, uint32_t n) {
  using In = cuda::Pack<From, kWide>;
  using Out = cuda::Pack<float, kWide>;
  constexpr uint32_t kInFlight = 4, kThreads = cuda::kThreads;
  const uint32_t packs = n / kWide;
  for (uint32_t begin = threadIdx.x; begin < packs; begin += kInFlight * kThreads) {
    In arriving[kInFlight] = {};
    Out there[kInFlight] = {};
#pragma unroll
    for (uint32_t b = 0; b < kInFlight; ++b) {
      const uint32_t p = begin + b * kThreads;
      if (p >= packs) continue;
      if (from != nullptr) arriving[b] = reinterpret_cast<const In*>(from)[p];
      if (from == nullptr || batch.add) there[b] = reinterpret_cast<const Out*>(to)[p];
    }
#pragma unroll
    for (uint32_t b = 0; b < kInFlight; ++b) {
      const uint32_t p = begin + b * kThreads;
      if (p >= packs) continue;
      for (int j = 0; j < kWide && from != nullptr; ++j) {
        const float x = cuda::load(arriving[b].values[j]);
        there[b].values[j] = batch.add ? there[b].values[j] + x : x;
      }
      if (from != nullptr) reinterpret_cast<Out*>(to)[p] = there[b];
      for (int j = 0; j < kWide && batch.first != nullptr; ++j)
        if (!isfinite(there[b].values[j]))
          atomicMin(batch.first,
                    static_cast<unsigned long long>(to - batch.origin) + p * kWide + j);
    }
  }
}

template <class From>
__global__ void __launch_bounds__(cuda::kThreads) finish_kernel(Batch<From> batch) {
  uint32_t vector = 0;
  while (vector + 1 < batch.count && batch.first_block[vector + 1] <= blockIdx.x) ++vector;
  const uint32_t begin = (blockIdx.x - batch.first_block[vector]) * Batch<From>::kBlockElements;
  const uint32_t n = min(batch.n[vector] - begin, Batch<From>::kBlockElements);
  float* const to = batch.to[vector] + begin;
  const From* const from = batch.from[vector] == nullptr ? nullptr : batch.from[vector] + begin;
  constexpr uint32_t kWide = 4;
  const bool wide = reinterpret_cast<uintptr_t>(to) % sizeof(cuda::Pack<float, kWide>) == 0 &&
                    reinterpret_cast<uintptr_t>(from) % sizeof(cuda::Pack<From, kWide>) == 0;
  const uint32_t whole = wide ? n / kWide * kWide : 0;
  finish<kWide>(batch, from, to, whole);
  finish<1>(batch, from == nullptr ? nullptr : from + whole, to + whole, n - whole);
}

template <class From>
void run(const Context& ctx, Batch<From>& batch) {
  if (batch.first_block[batch.count] > 0)
    cuda::launch(ctx, "gradients", finish_kernel<From>, batch.first_block[batch.count],
                 cuda::kThreads, batch);
  batch.count = 0;
}

/// Runs the held deliveries from From. With `first`, also checks the vectors between them.
template <class From>
void run_held(const Context& ctx, std::vector<HeldDelivery> held, std::span<const float> gradients,
              unsigned long long* first) {
  std::erase_if(held, [](const HeldDelivery& d) { return d.type != DTypeOf<From>::value; });
  std::ranges::sort(held, {}, &HeldDelivery::to);
  Batch<From> batch;
  batch.origin = gradients.data();
  batch.first = first;
  auto* at = const_cast<float*>(gradients.data());  // only read where nothing is delivered
  const auto push = [&](const From* from, float* to, int64_t n) {
    if (n == 0) return;
    if (batch.full()) run(ctx, batch);
    batch.push(from, to, n);
  };
  for (const HeldDelivery& delivery : held) {
    if (batch.count > 0 && delivery.add != batch.add) run(ctx, batch);
    batch.add = delivery.add;
    if (first != nullptr) push(nullptr, at, delivery.to - at);
    push(static_cast<const From*>(delivery.from), delivery.to, delivery.n);
    at = delivery.to + delivery.n;
  }
  if (first != nullptr) push(nullptr, at, gradients.data() + gradients.size() - at);
  run(ctx, batch);
}

void hold_deliveries_cuda(Context& ctx) {
  auto& handles = ctx.handles<CudaHandles>();
  handles.join_side();
  handles.holds_deliveries = true;
  handles.held_deliveries.clear();  // those of a pass that failed
}

std::vector<HeldDelivery> take_held(Context& ctx) {
  auto& handles = ctx.handles<CudaHandles>();
  handles.join_side();
  handles.holds_deliveries = false;
  return std::exchange(handles.held_deliveries, {});
}

void run_deliveries_cuda(Context& ctx) {
  const std::vector<HeldDelivery> held = take_held(ctx);
  run_held<bf16>(ctx, held, {}, nullptr);
  run_held<float>(ctx, held, {}, nullptr);
}

const bool gradients_registered =
    hold_deliveries_dispatch.add(Device::cuda, hold_deliveries_cuda) &&
    run_deliveries_dispatch.add(Device::cuda, run_deliveries_cuda);

}  // namespace

void deliver(Context& ctx, const Tensor& x, bool accumulate, float* y) {
  auto& handles = ctx.handles<CudaHandles>();
  if (handles.holds_deliveries) {
    handles.held_deliveries.push_back({x.data, x.dtype, y, x.numel(), accumulate});
    return;
  }
  with_activation_type(x.dtype, [&]<class T>() {
    const auto* const from = static_cast<const T*>(x.data);
    if (accumulate)
      cuda::map(ctx, "deliver", x.numel(), Add{}, y, from, static_cast<const float*>(y));
    else
      cuda::map(ctx, "deliver", x.numel(), Copy{}, y, from);
  });
}

void check_gradients(Context& ctx, std::span<const float> x, unsigned long long* first) {
  run_held<float>(ctx, {}, x, first);
}

void deliver_and_check(Context& ctx, std::span<const float> gradients, unsigned long long* first) {
  std::vector<HeldDelivery> held = take_held(ctx);
  const auto rounded = [](const HeldDelivery& d) { return d.type == DType::bf16; };
  const bool f32_only = std::ranges::none_of(held, rounded);
  if (!f32_only) {  // a model has one type, so that there is nothing to do here
    run_held<float>(ctx, held, {}, nullptr);
    return run_held<bf16>(ctx, std::move(held), gradients, first);
  }
  run_held<float>(ctx, std::move(held), gradients, first);
}

}  // namespace tw::ops
