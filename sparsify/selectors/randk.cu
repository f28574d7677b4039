// RandomSubset on a GPU. All draws find their positions in parallel, with a hash table of the first
// draw of each position (FloydSample::repeats).
#include "sparsify/kernels/bitmask_cuda.h"
#include "sparsify/selectors/randk.h"

namespace tw::cuda {

namespace {

/// The first draw of each position: a hash table of position << 32 | draw, open addressing.
struct FirstDraws {
  static constexpr unsigned long long kEmpty = ~0ull;
  unsigned long long* slots;
  uint32_t mask;  ///< slots - 1; slots are a power of two, twice the draws at least

  constexpr uint32_t start(uint32_t position) const {
    return (position * 0x9E3779B1u ^ position >> 15) & mask;
  }
  __device__ void add(uint32_t position, uint32_t draw) const {
    const unsigned long long entry = static_cast<unsigned long long>(position) << 32 | draw;
    for (uint32_t at = start(position);; at = (at + 1) & mask) {
      const unsigned long long there = atomicCAS(&slots[at], kEmpty, entry);
      if (there == kEmpty) return;
      if (there >> 32 != position) continue;
      atomicMin(&slots[at], entry);
      return;
    }
  }
  constexpr size_t operator()(size_t position) const {
    for (uint32_t at = start(static_cast<uint32_t>(position));; at = (at + 1) & mask)
      if (slots[at] >> 32 == position) return static_cast<uint32_t>(slots[at]);
  }
};

struct Draw {
  FloydSample sample;
  FirstDraws firsts;
  __device__ void operator()(int64_t i) const {
    firsts.add(static_cast<uint32_t>(sample.draw(i)), static_cast<uint32_t>(i));
  }
};

struct Mark {
  FloydSample sample;
  FirstDraws firsts;
  uint32_t* words;
  __device__ void operator()(int64_t i) const {
    const size_t at = sample.repeats(i, firsts) ? sample.last(i) : sample.draw(i);
    atomicOr(&words[at / 32], 1u << at % 32);
  }
};

class DeviceSubsetMover : public SubsetMover {
 public:
  void move(Context& ctx, const FloydSample& sample, bool zeros, std::span<float> e, uint32_t base,
            SparseVector& out) override {
    if (sample.k == 0) return;
    marks_.begin(ctx, sample.n, 0, sample.k);
    const size_t slots = std::bit_ceil(2 * sample.k), bytes = slots * sizeof(unsigned long long);
    if (slots_.bytes() < bytes) slots_ = Buffer(Device::cuda, bytes);
    expect(cudaMemsetAsync(slots_.data(), 0xff, bytes, stream(ctx)), "randk");
    const size_t words = static_cast<size_t>(marks_.tiles() * kTileWords);
    expect(cudaMemsetAsync(marks_.words(), 0, words * sizeof(uint32_t), stream(ctx)), "randk");

    const FirstDraws firsts{slots_.as<unsigned long long>().data(),
                            static_cast<uint32_t>(slots - 1)};
    const auto k = static_cast<int64_t>(sample.k);
    for_each(ctx, "randk", k, Draw{sample, firsts});
    for_each(ctx, "randk", k, Mark{sample, firsts, marks_.words()});
    // takes every marked entry: those above the cut 0 and, with `zeros`, those equal to it
    marks_.set_cut(ctx, {.cut = 0, .wanted = zeros ? ~0u : 0});
    marks_.take(ctx, ~0u, sample.k, e, base, out);
  }

 private:
  Bitmask marks_;
  Buffer slots_;
};

const bool randk_registered = subset_mover_dispatch.add(
    Device::cuda,
    []() -> std::unique_ptr<SubsetMover> { return std::make_unique<DeviceSubsetMover>(); });

}  // namespace
}  // namespace tw::cuda
