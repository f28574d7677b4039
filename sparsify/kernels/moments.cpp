#include "sparsify/kernels/moments.h"

#include <algorithm>
#include <bit>

#include "engine/core/parallel.h"
#include "sparsify/kernels/magnitude.h"
#include "sparsify/kernels/stream_compaction.h"

#define TW_KERNELS "sparsify/kernels/moments.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::TW_CPU {

/// One block of tail_of.
inline void tail(const float* u, size_t n, uint32_t bits, Tail* block) {
  using Words = Lanes<int32_t, kMeasureLanes>;
  Lanes<double, kMeasureLanes> sums{};
  Words counts{}, least{};
  for (auto& part : least.part) part += static_cast<int32_t>(kInfinityBits);
  const auto add = [&](const float* x) __attribute__((always_inline)) {
    float reaching[kMeasureLanes];
    for (size_t p = 0; p < Words::kParts; ++p) {
      Words::Vector magnitude;
      std::memcpy(&magnitude, x + p * Words::kWidth, sizeof magnitude);
      magnitude &= 0x7fffffff;
      const Words::Vector reaches = magnitude >= static_cast<int32_t>(bits);  // all bits, or none
      const Words::Vector kept = magnitude & reaches;
      counts.part[p] -= reaches;
      const Words::Vector size = kept | (~reaches & static_cast<int32_t>(kInfinityBits));
      least.part[p] = size < least.part[p] ? size : least.part[p];
      std::memcpy(reaching + p * Words::kWidth, &kept, sizeof kept);
    }
    sums += widened<kMeasureLanes>(reaching);
  };
  size_t i = 0;
  for (; i + kMeasureLanes <= n; i += kMeasureLanes) add(u + i);
  float last[kMeasureLanes] = {};  // zeros reach no threshold
  std::copy(u + i, u + n, last);
  add(last);
  for (size_t j = 0; j < kMeasureLanes; ++j) {
    block->sum += sums[j];
    block->least = std::min(block->least, std::bit_cast<float>(least[j]));
    block->count += static_cast<uint32_t>(counts[j]);
  }
}

}  // namespace tw::TW_CPU
#else
namespace tw {

namespace {

void tail_cpu(Context& ctx, std::span<const float> u, uint32_t bits, std::span<Tail> blocks) {
  parallel_for(ctx, u.size(), kMeasureBlock, [&](size_t begin, size_t end) {
    TW_KERNEL(tail, u.data() + begin, end - begin, bits, &blocks[begin / kMeasureBlock]);
  });
}

void measure_cpu(Context& ctx, std::span<const float> g, std::span<float> e,
                 std::span<Moments> blocks) {
  parallel_for(ctx, e.size(), kMeasureBlock, [&](size_t begin, size_t end) {
    constexpr uint32_t kNone = 0x80000000u;  // bits above those of every magnitude
    uint32_t index = 0;
    float value = 0;
    add_and_compact(g.empty() ? nullptr : g.data() + begin, e.data() + begin, end - begin, kNone, 0,
                    {&index, &value}, &blocks[begin / kMeasureBlock]);
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

Tail tail_of(Context& ctx, std::span<const float> u, uint32_t bits, std::vector<Tail>& blocks) {
  blocks.assign(measure_blocks(u.size()), {});
  tail_dispatch(ctx.device(), ctx, u, bits, blocks);
  return total_of(blocks);
}

Tail total_of(std::span<const Tail> blocks) {
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
#endif
