#include "sparsify/kernels/moments.h"

#include <algorithm>
#include <cstring>

#include "engine/core/parallel.h"
#include "engine/core/simd.h"
#include "sparsify/kernels/magnitude.h"

namespace tw {

constinit DispatchTable<MeasureFunction> measure_dispatch{"measure"};
constinit DispatchTable<TailFunction> tail_dispatch{"tail"};

namespace {

constexpr size_t kLanes = kMeasureLanes;
// GCC vector types: plain loops with fixed lanes are not vectorized
typedef float Lanes __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t LaneBits __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef double WideLanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef int64_t WideBits __attribute__((vector_size(kLanes * sizeof(int64_t))));

// a square of a float is exact in double, so fused multiply-add gives the same bits
template <bool kMagnitudes>
TW_INLINE void measure_lanes(const float* g, float* e, size_t n, Moments* measure) {
  WideLanes sums = {}, squares = {}, magnitudes = {};
  Lanes largest = {};
  const auto add = [&](const Lanes& u) __attribute__((always_inline)) {
    const WideLanes wide = __builtin_convertvector(u, WideLanes);
    sums += wide;
    squares += wide * wide;
    if (!kMagnitudes) return;
    const Lanes magnitude = (Lanes)((LaneBits)u & 0x7fffffff);
    magnitudes += (WideLanes)((WideBits)wide & INT64_MAX);
    largest = magnitude > largest ? magnitude : largest;
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes u;
    std::memcpy(&u, e + i, sizeof u);
    if (g != nullptr) {
      Lanes gradient;
      std::memcpy(&gradient, g + i, sizeof gradient);
      u += gradient;
      std::memcpy(e + i, &u, sizeof u);
    }
    add(u);
  }
  // the remaining elements, in the first lanes of one more vector
  if (g != nullptr)
    for (size_t j = i; j < n; ++j) e[j] += g[j];
  Lanes rest = {};
  if (i < n) std::memcpy(&rest, e + i, (n - i) * sizeof(float));
  add(rest);

  for (size_t j = 0; j < kLanes; ++j) {
    measure->sum += sums[j];
    measure->square += squares[j];
    measure->magnitude += magnitudes[j];
    measure->largest = std::max(measure->largest, largest[j]);
  }
}

TW_MULTIVERSION void measure_block(const float* g, float* e, size_t n, Moments* measure) {
  measure_lanes<true>(g, e, n, measure);
}
TW_MULTIVERSION void sum_block(const float* g, float* e, size_t n, Moments* measure) {
  measure_lanes<false>(g, e, n, measure);
}

TW_MULTIVERSION void tail_block(const float* u, size_t n, uint32_t bits, Tail* tail) {
  WideLanes sums = {};
  LaneBits counts = {}, least = LaneBits{} + static_cast<int32_t>(kInfinityBits);
  const auto add = [&](const Lanes& x) __attribute__((always_inline)) {
    const LaneBits magnitude = (LaneBits)x & 0x7fffffff;
    const LaneBits reaches = magnitude >= static_cast<int32_t>(bits);  // all bits set, or none
    sums += __builtin_convertvector((Lanes)(magnitude & reaches), WideLanes);
    counts -= reaches;
    least = reaches & (magnitude < least) ? magnitude : least;
  };
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    Lanes x;
    std::memcpy(&x, u + i, sizeof x);
    add(x);
  }
  Lanes rest = {};  // zeros reach no threshold
  if (i < n) std::memcpy(&rest, u + i, (n - i) * sizeof(float));
  add(rest);

  for (size_t j = 0; j < kLanes; ++j) {
    tail->sum += sums[j];
    tail->least = std::min(tail->least, std::bit_cast<float>(least[j]));
    tail->count += static_cast<uint32_t>(counts[j]);
  }
}

void tail_cpu(Context& ctx, std::span<const float> u, uint32_t bits, std::span<Tail> blocks) {
  parallel_for(ctx, u.size(), kMeasureBlock, [&](size_t begin, size_t end) {
    tail_block(u.data() + begin, end - begin, bits, &blocks[begin / kMeasureBlock]);
  });
}

void measure_cpu(Context& ctx, std::span<const float> g, std::span<float> e,
                 std::span<Moments> blocks) {
  parallel_for(ctx, e.size(), kMeasureBlock, [&](size_t begin, size_t end) {
    measure_block(g.empty() ? nullptr : g.data() + begin, e.data() + begin, end - begin,
                  &blocks[begin / kMeasureBlock]);
  });
}

const bool moments_registered = measure_dispatch.add(Device::cpu, measure_cpu);
const bool tail_registered = tail_dispatch.add(Device::cpu, tail_cpu);

}  // namespace

Moments add_and_moments(Context& ctx, std::span<const float> g, std::span<float> e,
                        std::vector<Moments>& blocks) {
  blocks.assign(measure_blocks(e.size()), {});
  measure_dispatch(ctx.device(), ctx, g, e, blocks);
  return total_of(blocks);
}

void add_and_sum_block(const float* g, float* e, size_t n, Moments& block) {
  sum_block(g, e, n, &block);
}

Tail tail_of(Context& ctx, std::span<const float> u, uint32_t bits, std::vector<Tail>& blocks) {
  blocks.assign(measure_blocks(u.size()), {});
  tail_dispatch(ctx.device(), ctx, u, bits, blocks);
  Tail total;
  for (const Tail& block : blocks) {
    total.sum += block.sum;
    total.least = std::min(total.least, block.least);
    total.count += block.count;
  }
  return total;
}

Moments total_of(std::span<const Moments> blocks) {
  Moments total;
  for (const Moments& block : blocks) {
    total.sum += block.sum;
    total.square += block.square;
    total.magnitude += block.magnitude;
    total.largest = std::max(total.largest, block.largest);
  }
  return total;
}

}  // namespace tw
