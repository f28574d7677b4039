#include <algorithm>
#include <array>

#include "engine/cuda/cuda_kernel.h"
#include "engine/ops/transfer_cuda.h"

namespace tw::ops {
namespace {

/// Arguments of one launch on up to kMost vectors. Each block handles kBlockElements elements of
/// one vector: replaces or increases them by those of `from`, unless that is null, and checks them.
template <class From, class To>
struct Batch {
  static constexpr uint32_t kMost = 128, kBlockElements = 4096;
  uint32_t count = 0;
  bool add = false;
  std::array<uint32_t, kMost + 1> first_block{};
  std::array<const From*, kMost> from{};
  std::array<To*, kMost> to{};
  std::array<uint32_t, kMost> n{};
  const To* origin = nullptr;           ///< the element with index 0
  unsigned long long* first = nullptr;  ///< lowest index of a NaN or infinity; null: no check

  bool full() const { return count == kMost; }
  void push(const From* source, To* destination, int64_t elements) {
    cuda::expect_32_bits("transfer", elements);
    from[count] = source;
    to[count] = destination;
    n[count] = static_cast<uint32_t>(elements);
    const auto blocks = static_cast<uint32_t>((elements + kBlockElements - 1) / kBlockElements);
    first_block[count + 1] = first_block[count] + blocks;
    ++count;
  }
};

/// A block's n elements, with kWide of them in one memory access. Rounds as the CPU does, NaNs
/// included.
template <int kWide, class From, class To>
__device__ void move(const Batch<From, To>& batch, const From* from, To* to, uint32_t n) {
  using In = cuda::Pack<From, kWide>;
  using Out = cuda::Pack<To, kWide>;
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
        there[b].values[j] = static_cast<To>(batch.add ? cuda::load(there[b].values[j]) + x : x);
      }
      if (from != nullptr) reinterpret_cast<Out*>(to)[p] = there[b];
      for (int j = 0; j < kWide && batch.first != nullptr; ++j)
        if (!isfinite(cuda::load(there[b].values[j])))
          atomicMin(batch.first,
                    static_cast<unsigned long long>(to - batch.origin) + p * kWide + j);
    }
  }
}

template <class From, class To>
__global__ void __launch_bounds__(cuda::kThreads) transfer_kernel(Batch<From, To> batch) {
  uint32_t vector = 0;
  while (vector + 1 < batch.count && batch.first_block[vector + 1] <= blockIdx.x) ++vector;
  const uint32_t begin = (blockIdx.x - batch.first_block[vector]) * batch.kBlockElements;
  const uint32_t n = min(batch.n[vector] - begin, batch.kBlockElements);
  To* const to = batch.to[vector] + begin;
  const From* const from = batch.from[vector] == nullptr ? nullptr : batch.from[vector] + begin;
  constexpr uint32_t kWide = 4;
  const bool wide = reinterpret_cast<uintptr_t>(to) % sizeof(cuda::Pack<To, kWide>) == 0 &&
                    reinterpret_cast<uintptr_t>(from) % sizeof(cuda::Pack<From, kWide>) == 0;
  const uint32_t whole = wide ? n / kWide * kWide : 0;
  move<kWide>(batch, from, to, whole);
  move<1>(batch, from == nullptr ? nullptr : from + whole, to + whole, n - whole);
}

template <class From, class To>
void launch(const Context& ctx, Batch<From, To>& batch) {
  if (batch.first_block[batch.count] > 0)
    cuda::launch(ctx, "transfer", transfer_kernel<From, To>, batch.first_block[batch.count],
                 cuda::kThreads, batch);
  batch.count = 0;
}

/// Runs the transfers from From to To. With `first`, also checks `to`, which contains all their
/// destinations.
template <class From, class To>
void run(const Context& ctx, const Transfers& transfers, std::span<const To> to = {},
         unsigned long long* first = nullptr) {
  std::vector<const Transfer*> own;
  for (const Transfer& each : transfers)
    if (each.from.dtype == DTypeOf<From>::value && each.to.dtype == DTypeOf<To>::value)
      own.push_back(&each);
  std::ranges::sort(own, {}, [](const Transfer* each) { return each->to.data; });
  Batch<From, To> batch;
  batch.origin = to.data();
  batch.first = first;
  auto* at = const_cast<To*>(to.data());  // only read where nothing is transferred
  const auto push = [&](const From* source, To* destination, int64_t n) {
    if (n == 0) return;
    if (batch.full()) launch(ctx, batch);
    batch.push(source, destination, n);
  };
  for (const Transfer* each : own) {
    if (batch.count > 0 && each->add != batch.add) launch(ctx, batch);
    batch.add = each->add;
    const std::span<To> destination = each->to.template as<To>();
    if (first != nullptr) push(nullptr, at, destination.data() - at);
    push(each->from.template as<From>().data(), destination.data(), std::ssize(destination));
    at = destination.data() + destination.size();
  }
  if (first != nullptr) push(nullptr, at, to.data() + to.size() - at);
  launch(ctx, batch);
}

void transfer_cuda(Context& ctx, const Transfers& transfers) {
  ctx.handles<CudaHandles>().join_side();
  run<float, float>(ctx, transfers);
  run<float, bf16>(ctx, transfers);
  run<bf16, float>(ctx, transfers);
}

const bool transfer_registered = transfer_dispatch.add(Device::cuda, transfer_cuda);

}  // namespace

void transfer_and_check(Context& ctx, const Transfers& transfers, std::span<const float> gradients,
                        unsigned long long* first) {
  ctx.handles<CudaHandles>().join_side();
  const auto rounded = [](const Transfer& each) { return each.from.dtype == DType::bf16; };
  if (std::ranges::none_of(transfers, rounded))
    return run<float, float>(ctx, transfers, gradients, first);
  run<float, float>(ctx, transfers);  // a model has one type, so that there is nothing to do here
  run<bf16, float>(ctx, transfers, gradients, first);
}

}  // namespace tw::ops
