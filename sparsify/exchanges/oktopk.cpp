// Ok-Topk (Li and Hoefler, PPoPP 2022): a sparse allreduce whose volume does not grow with P.
//   1. Each rank selects what exceeds its local threshold. The index space is cut into one region a
//      rank, so that regions hold about equally many entries; entries go to their region's owner
//      (P-1 messages a rank), which adds them up.
//   2. Owners keep the sums that exceed a global threshold and send those to all ranks.
//   A rank's residual loses only what is in both selections; the rest goes back, each rank its own.
// Thresholds and borders are computed exactly every 32 steps (`oktopk.exact_every`), when k
// changes, and when counts are far astray (local: half or 3/2 of k, global: half or twice). In
// between, thresholds move by 1.2 % (local) and 0.8 % (global) when counts leave 2k/3 .. 5k/4 and
// 2k/3 .. 4k/3.
//
// Bytes over all ranks: 8 P (P-1) + 24 P (P-1) + those of the entries. Those, in a step that is not
// exact: k (P-1) move to their owner, k (P-1) from there, 16 k (P-1) bytes if plain; at most 6 k
// (P-1) / P words a rank as long as the counts are where they should be. An exact step sends all
// sums, not only k, and 260 P (P-1) bytes of borders.
// Messages a rank: P-1 and ceil(log2 P). Seconds: (P - 1 + ceil(log2 P)) alpha + 4 k (P-1)/P beta.

#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/collectives/exchange_variable.h"
#include "sparsify/encoding/sparse_message.h"
#include "sparsify/exchanges/oktopk_state.h"
#include "sparsify/exchanges/topk_merge.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

SparseView between(const SparseView& v, uint32_t begin, uint32_t end) {
  const auto first = std::ranges::lower_bound(v.indices, begin) - v.indices.begin();
  const auto last = std::ranges::lower_bound(v.indices, end) - v.indices.begin();
  return {v.indices.subspan(first, last - first), v.values.subspan(first, last - first)};
}

float least_magnitude(const SparseVector& v) {
  uint32_t least = v.count == 0 ? 0 : kInfinityBits;
  for (float value : v.value_span()) least = std::min(least, magnitude_bits(value));
  return std::bit_cast<float>(least);
}

class OkTopk : public Exchange {
 public:
  explicit OkTopk(const Settings& settings)
      : wire_(settings), gathered_(wire_), every_(settings.integer("oktopk.exact_every")) {
    check(every_ >= 1, "[oktopk] exact_every is {}; expected at least 1", every_);
  }

  bool prepare(Context&, Communicator&, const ExchangeStep& step, Control&) override {
    exact_ = state_.k != step.k || step.k >= step.gradient.size() ||
             step.step % static_cast<uint64_t>(every_) == 0;
    if (exact_) state_.local = 0;
    return true;
  }
  float threshold() const override { return state_.local; }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const size_t d = step.gradient.size();
    SparseVector& mine = *step.mine;
    load_ = {};
    follow_local(mine, step.k);
    residual_return_.rounding(ctx, wire_, mine, step.residual);
    if (exact_) agree_on_regions(ctx, comm, mine, d);
    // a rank's entries may lie close together: only all of them fit in any case
    reduce_to_owners(ctx, comm, mine.view(), std::min(2 * step.k, d), d);

    choose();
    // the sums of all regions have room for each rank's at once
    const size_t usual = std::min(4 * step.k / static_cast<size_t>(comm.size()) + 1024, d);
    const auto parts = gathered_.gather(ctx, comm, chosen_.view(), usual, d, control);
    load_ += gathered_.load();
    if (control.nonfinite_rank >= 0) return;

    keep(parts, step.k);
    residual_return_.missing(ctx, mine.view(), kept_.index_span(), step.residual);
    put_back_rounding(ctx, step.residual);
    const SparseView sum = kept_.view();
    sparse_sum(ctx, {&sum, 1}, step.gradient);
  }

  std::span<std::byte> state() override { return std::as_writable_bytes(std::span(&state_, 1)); }

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    return overhead(ranks) + wire_.expected_bytes(2.0 * (ranks - 1), entries, ranks, d);
  }
  uint64_t claimed_bytes(int ranks, size_t, const Traffic& load) const override {
    return overhead(ranks) + load.bytes;
  }

 private:
  static uint64_t overhead(int ranks) {
    const uint64_t p = static_cast<uint64_t>(ranks);
    return p * (p - 1) * sizeof(uint64_t) + gather_overhead(ranks);
  }

  // the next step's local threshold; each rank has its own
  void follow_local(const SparseVector& mine, size_t k) {
    // exact selection costs the others nothing
    const bool astray = 2 * mine.count > 3 * k || 2 * mine.count < k;
    if (state_.local == 0)
      state_.local = least_magnitude(mine);
    else
      state_.local = astray ? 0 : nudged(state_.local, mine.count, k, 2.0 / 3, 1.25, 1.012f);
  }

  // regions follow the mean of the ranks' quantiles
  void agree_on_regions(Context& ctx, Communicator& comm, const SparseVector& mine, size_t d) {
    const auto own = piece_borders(mine.index_span(), d);
    allgather(ctx, comm, std::as_bytes(std::span(own)), sizeof own, borders_);
    load_.bytes += static_cast<uint64_t>(comm.size() - 1) * (sizeof own + sizeof(uint64_t));
    std::array<uint64_t, own.size()> sums{};
    for (int rank = 0; rank < comm.size(); ++rank) {
      std::array<uint32_t, own.size()> knots;
      check<Fault>(borders_[rank].size() == sizeof knots,
                   "[oktopk] rank {} sent {} bytes of borders", rank, borders_[rank].size());
      std::memcpy(knots.data(), borders_[rank].data(), sizeof knots);
      for (size_t j = 0; j < knots.size(); ++j) sums[j] += knots[j];
    }
    for (size_t j = 0; j < sums.size(); ++j)
      state_.knots[j] = static_cast<uint32_t>(sums[j] / static_cast<uint64_t>(comm.size()));
  }

  // leaves the sums of this rank's region in reduced_
  void reduce_to_owners(Context& ctx, Communicator& comm, const SparseView& mine, size_t usual,
                        size_t d) {
    const int ranks = comm.size(), self = comm.rank();
    const auto part = [&](int owner) {
      return between(mine, state_.border(owner, ranks), state_.border(owner + 1, ranks));
    };
    merge_(part(self), {}, SIZE_MAX, reduced_);
    for (int shift = 1; shift < ranks; ++shift) {
      const int to = (self + shift) % ranks, from = (self + ranks - shift) % ranks;
      const SparseView theirs = swap_parts(ctx, comm, to, part(to), from, usual, d);
      merge_(reduced_.view(), theirs, SIZE_MAX, next_);
      std::swap(reduced_, next_);
    }
  }

  // A message is the part's length and the part; what exceeds the usual length follows in another.
  SparseView swap_parts(Context& ctx, Communicator& comm, int to, const SparseView& out, int from,
                        size_t usual, size_t d) {
    const size_t limit = wire_.bound(usual);
    message_.resize(std::max(message_.size(), sizeof(uint64_t) + wire_.bound(out.indices.size())));
    uint64_t bytes = wire_.encode(out, message_.data() + sizeof bytes);
    std::memcpy(message_.data(), &bytes, sizeof bytes);
    load_ += {out.indices.size(), bytes};
    const ConstBytes message(message_.data(), sizeof bytes + bytes);
    const size_t length = exchange_variable("oktopk", ctx, comm, to, message, from, 1, limit,
                                            wire_.bound(d), incoming_);
    return wire_.decode({incoming_.data() + sizeof bytes, length}, d, from, received_);
  }

  // the sums of this rank's region that travel to all
  void choose() {
    chosen_.reserve(reduced_.count);
    const uint32_t least = exact_ ? 0 : magnitude_bits(state_.global);
    size_t count = 0;
    for (size_t i = 0; i < reduced_.count; ++i) {
      chosen_.indices[count] = reduced_.indices[i];
      chosen_.values[count] = reduced_.values[i];
      count += magnitude_bits(reduced_.values[i]) >= least;
    }
    chosen_.count = count;
    wire_.round(chosen_);
  }

  // all ranks' choices follow each other; an exact step cuts them to k and learns the threshold
  void keep(std::span<const SparseView> parts, size_t k) {
    size_t total = 0;
    for (const SparseView& part : parts) total += part.indices.size();
    all_.reserve(total);
    all_.count = 0;
    for (const SparseView& part : parts) {
      std::ranges::copy(part.indices, all_.indices.begin() + all_.count);
      std::ranges::copy(part.values, all_.values.begin() + all_.count);
      all_.count += part.indices.size();
    }
    merge_(all_.view(), {}, exact_ ? k : SIZE_MAX, kept_);

    const size_t count = kept_.count;
    if (exact_)
      state_.global = least_magnitude(kept_);
    else
      state_.global = nudged(state_.global, count, k, 2.0 / 3, 4.0 / 3, 1.008f);
    const bool astray = count > 2 * k || 2 * count < k || state_.global == 0;
    state_.k = astray ? 0 : static_cast<uint32_t>(k);
  }

  // what the wire took off this rank's sums, where they were kept
  void put_back_rounding(Context& ctx, std::span<float> residual) {
    if (wire_.exact() || residual.empty()) return;
    rounded_off_.count = 0;
    rounded_off_.reserve(reduced_.count);
    size_t j = 0;
    for (size_t i = 0; i < reduced_.count; ++i) {
      while (j < kept_.count && kept_.indices[j] < reduced_.indices[i]) ++j;
      if (j < kept_.count && kept_.indices[j] == reduced_.indices[i])
        rounded_off_.push(reduced_.indices[i], reduced_.values[i] - kept_.values[j]);
    }
    scatter_add(ctx, rounded_off_.view(), residual);
  }

  SparseCodec wire_;
  GatheredEntries gathered_;
  int64_t every_;
  bool exact_ = true;
  OkTopkState state_;
  TopkMerge merge_;
  ResidualReturn residual_return_;
  SparseVector reduced_, next_, received_, chosen_, all_, kept_, rounded_off_;
  GatheredBlocks borders_;
  std::vector<std::byte> message_, incoming_;
};

const bool exchange =
    exchanges().add({"oktopk",
                     "entries to the owner of their region, the largest sums from there to all",
                     {.make = make_exchange<OkTopk>},
                     {{"exact_every", "32", "steps between exact thresholds and regions"}}});
const bool algorithm =
    sparsifiers().add({"oktopk",
                       "Ok-Topk: thresholds kept for several steps, an allreduce by regions",
                       {.selector = "oktopk", .exchange = "oktopk"}});

}  // namespace

}  // namespace tw
