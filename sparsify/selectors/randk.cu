// RandomSubset on a GPU. All draws find their positions in parallel, with a hash table of the first
// draw of each position (FloydSample::repeats).
#include "sparsify/kernels/marked_vectors_cuda.h"
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
  Marks::Entry* slots;  ///< of crowded chunks
  __device__ void operator()(int64_t i) const {
    const size_t at = sample.repeats(i, firsts) ? sample.last(i) : sample.draw(i);
    atomicOr(&slots[at / 32].index, 1u << at % 32);
  }
};

class DeviceSubsetMover : public SubsetMover {
 public:
  void move(Context& ctx, const FloydSample& sample, bool zeros, std::span<float> e, uint32_t base,
            SparseVector& out) override {
    if (sample.k == 0) return;
    const size_t slots = std::bit_ceil(2 * sample.k), bytes = slots * sizeof(unsigned long long);
    slots_.grow(Device::cuda, bytes);
    expect(cudaMemsetAsync(slots_.data(), 0xff, bytes, stream(ctx)), "randk");
    const MarkedVectors::Threshold none;
    vector_.refer_to(e);
    vector_.begin(ctx, {&none, 1});
    const Marks& marks = vector_.marks(0);
    const auto chunks = static_cast<size_t>(marks.chunks());
    expect(cudaMemsetAsync(marks.counts, 0xff, chunks * sizeof *marks.counts, stream(ctx)),
           "randk");
    expect(
        cudaMemsetAsync(marks.slots, 0, chunks * Marks::kSlot * sizeof *marks.slots, stream(ctx)),
        "randk");

    const FirstDraws firsts{slots_.as<unsigned long long>().data(),
                            static_cast<uint32_t>(slots - 1)};
    const auto k = static_cast<int64_t>(sample.k);
    for_each(ctx, "randk", k, Draw{sample, firsts});
    for_each(ctx, "randk", k, Mark{sample, firsts, marks.slots});
    // takes every marked entry: those above the cut 0 and, with `zeros`, those equal to it
    const MarkedVectors::Take all{
        .most = sample.k, .base = base, .cut = {.cut = 0, .wanted = zeros ? ~0u : 0}};
    vector_.take(ctx, {&all, 1}, out);
  }

 private:
  MarkedVectors vector_;
  Buffer slots_;
};

const bool randk_registered = subset_mover_dispatch.add<DeviceSubsetMover>(Device::cuda);

}  // namespace
}  // namespace tw::cuda
