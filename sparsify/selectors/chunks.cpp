// The largest entries of each chunk of u, of 4,096 elements by default, as SparseLoCo selects
// (Sarfi, Thérien, Lidin and Belilovsky 2025, arXiv 2508.15706): no threshold holds for the whole
// vector.
//
// The chunks share k by their lengths. With k b + r elements due up to position b, chunk [a, b)
// sends
//   floor((k b + r) / d) - floor((k a + r) / d)       r in [0, d), another one in each step
// entries, which makes k in all. What does not divide evenly goes to other chunks in other steps,
// so each gets its share also when there are more chunks than entries.

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/core/copy.h"
#include "engine/core/parallel.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/kernels/stream_compaction.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

constexpr const char* kChunks = "chunks";

size_t chunk_size(const Settings& settings) {
  return static_cast<size_t>(settings.integer("chunks.size"));
}

class Chunks : public Selector {
 public:
  Chunks(Context&, const Settings& settings) : size_(chunk_size(settings)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    if (ctx.device() == Device::cpu) return select_on_host(ctx, in, out);
    if (!host_) host_.emplace(Device::cpu, ctx.threads());
    gradient_.resize(in.g.size());
    copy_to_host(ctx, in.g, gradient_);
    HostFloats e(ctx, in.e);
    SelectStep there = in;
    there.g = gradient_;
    there.e = e.span();
    const SelectInfo info = select_on_host(*host_, there, out);
    e.write();
    return info;
  }

 private:
  /// Consecutive chunks, which one thread selects from.
  struct Part {
    SparseVector sent, found;
    std::vector<uint64_t> keys;
    uint32_t least = kInfinityBits;  // magnitude that is sent
    bool finite = true;
  };

  SelectInfo select_on_host(Context& ctx, const SelectStep& in, SparseVector& out) {
    const size_t d = in.e.size(), chunks = (d + size_ - 1) / size_;
    const size_t threads = static_cast<size_t>(ctx.threads());
    const size_t each = std::max<size_t>(1, (chunks + threads - 1) / threads);
    parts_.resize((chunks + each - 1) / each);
    parallel_for(ctx, chunks, each, [&](size_t begin, size_t end) {
      select_part(in, begin, end, parts_[begin / each]);
    });
    SelectInfo info{.threshold = std::bit_cast<float>(kInfinityBits)};
    for (const Part& part : parts_) {
      if (!part.finite) return name_nonfinite(ctx, in.e);
      info.threshold = std::min(info.threshold, std::bit_cast<float>(part.least));
    }
    for (const Part& part : parts_) {
      out.reserve(out.count + part.sent.count);
      for (size_t i = 0; i < part.sent.count; ++i)
        out.push(part.sent.indices[i] + in.base, part.sent.values[i]);
    }
    return info;
  }

  void select_part(const SelectStep& in, size_t first, size_t last, Part& part) const {
    const size_t d = in.e.size(), k = std::min(in.k, d);
    constexpr uint64_t kGolden = 0x9E3779B97F4A7C15ull;
    const uint64_t offset = ((in.step * kGolden) >> 32) * d >> 32;
    part.sent.count = 0;
    part.least = kInfinityBits;
    part.finite = true;
    uint32_t guess = 1;
    for (size_t chunk = first; chunk < last; ++chunk) {
      const size_t begin = chunk * size_, end = std::min(d, begin + size_);
      const size_t wanted = (k * end + offset) / d - (k * begin + offset) / d;
      collect(in, begin, end, !in.g.empty(), guess, part.found);
      if (part.found.count < wanted && guess > 1) collect(in, begin, end, false, 1, part.found);
      const uint32_t least = take(in.e, wanted, part);
      part.least = std::min(part.least, least);
      // the next chunk is probably similar; half a power of two below, it has several times as many
      constexpr uint32_t kMargin = uint32_t{1} << 22;
      if (wanted > 0) guess = least == 0 ? 1 : candidate_bits(std::max(least, kMargin) - kMargin);
    }
  }

  /// The entries of a chunk of at least `min_bits`, after g was added to e.
  static void collect(const SelectStep& in, size_t begin, size_t end, bool adds, uint32_t min_bits,
                      SparseVector& found) {
    found.count = 0;
    found.reserve(end - begin);
    found.count = add_and_compact(adds ? in.g.data() + begin : nullptr, in.e.data() + begin,
                                  end - begin, min_bits, static_cast<uint32_t>(begin),
                                  {found.indices.data(), found.values.data()});
  }

  /// Moves the `wanted` largest of those found from e to those sent. Returns the magnitude bits
  /// that they reach; 0 if all that are found are sent.
  static uint32_t take(std::span<float> e, size_t wanted, Part& part) {
    part.keys.clear();
    for (size_t i = 0; i < part.found.count; ++i) {
      const float value = part.found.values[i];
      part.finite = part.finite && magnitude_bits(value) < kInfinityBits;
      part.keys.push_back(rank_key(value, part.found.indices[i]));
    }
    if (wanted == 0 || !part.finite) return kInfinityBits;
    const uint64_t cut = part.keys.size() > wanted ? kth_largest(part.keys, wanted) : 0;
    const size_t first = part.sent.count;
    part.sent.reserve(first + std::min(wanted, part.found.count));
    for (size_t i = 0; i < part.found.count; ++i) {
      const uint32_t index = part.found.indices[i];
      if (rank_key(part.found.values[i], index) >= cut)
        part.sent.push(index, std::exchange(e[index], 0.0f));
    }
    return static_cast<uint32_t>(cut >> 32);
  }

  size_t size_;
  std::vector<Part> parts_;
  std::optional<Context> host_;  // of a GPU's entries
  std::vector<float> gradient_;
};

const bool chunks_selector = selectors().add(
    {kChunks,
     "the largest magnitudes of each chunk, k in all",
     {.make = make_selector<Chunks>, .volume = Volume::at_most_k, .chunk = chunk_size},
     {{.key = "size", .value = "4096", .help = "elements of a chunk", .least = 16}}});
const bool chunks_sparsifier =
    sparsifiers().add({kChunks,
                       "the largest entries of each chunk, error feedback, sparse allgather",
                       {.selector = kChunks, .exchange = "allgather"}});

}  // namespace

}  // namespace tw
