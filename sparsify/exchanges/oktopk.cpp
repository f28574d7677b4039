// Ok-Topk (Li and Hoefler, PPoPP 2022): a sparse allreduce whose volume does not grow with P.
//   1. Each rank selects the entries above its local threshold. The index space is cut into one
//      region per rank, with about equally many entries. Each entry goes to the owner of its region
//      (P-1 messages a rank), which adds them up.
//   2. Owners keep the sums above a global threshold and send them to all ranks.
//   Selected entries that the result lacks go back to the residual of their rank.
// Every `oktopk.exact_every` steps, and when counts are far off, thresholds and regions are
// computed exactly; see oktopk_state.h.
//
// Bytes over all ranks: 8 P (P-1) + 24 P (P-1) + those of the entries. In a step
// that is not exact, k (P-1) entries go to their owners and k (P-1) from there: 16 k (P-1) bytes if
// plain. An exact step sends all sums, not only k, and 260 P (P-1) bytes of borders.
// Messages a rank: P-1 and ceil(log2 P). Seconds: (P - 1 + ceil(log2 P)) alpha + 4 k (P-1)/P beta.

#include <algorithm>
#include <cstring>
#include <functional>

#include "comm/collectives/exchange_variable.h"
#include "sparsify/exchanges/gathering_exchange.h"
#include "sparsify/exchanges/oktopk_state.h"
#include "sparsify/exchanges/process_sum.h"
#include "sparsify/exchanges/topk_merge.h"
#include "sparsify/kernels/magnitude.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

SparseView between(const SparseView& v, uint32_t begin, uint32_t end) {
  const auto first = std::ranges::lower_bound(v.indices, begin) - v.indices.begin();
  const auto last = std::ranges::lower_bound(v.indices, end) - v.indices.begin();
  return {v.indices.subspan(first, last - first), v.values.subspan(first, last - first)};
}

class OkTopk : public GatheringExchange {
 public:
  OkTopk(const Settings& settings, const ExchangePlan& plan)
      : GatheringExchange(settings, plan),
        thresholds_(state_, settings.integer("oktopk.exact_every")) {}

  void prepare(Context&, Communicator&, const ExchangeStep& step, Control&) override {
    thresholds_.begin_step(step.step, step.k, step.gradient.size());
  }
  float threshold() const override { return thresholds_.local(); }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const size_t d = step.gradient.size();
    SparseVector& mine = *step.mine;
    load_ = {};
    thresholds_.update_local(mine, step.k);
    if (thresholds_.exact()) average_regions(ctx, comm, mine, d);
    // the sum of others' borders, or from a checkpoint
    check<Fault>(state_.divides(d), "[oktopk] the borders of the regions do not divide {} elements",
                 d);
    borders_.clear();
    for (int owner = 1; owner < comm.size(); ++owner)
      borders_.push_back(state_.border(owner, comm.size()));
    // to owners 0 to P-1, and to all
    const auto draws = plan_.draws(step.step, comm.rank(), 0),
               draws_to_all = plan_.draws(step.step, comm.rank(), comm.size());
    residual_return_.rounding(ctx, codec_, mine, step.residual, draws, borders_);
    // a message has room for 2 k entries, since a rank's entries may all be in one region
    reduce_to_owners(ctx, comm, mine.view(), std::min(2 * step.k, d), d);

    choose(draws_to_all);
    // the regions of all ranks together hold about k sums; leave room for four times the share
    const size_t usual = std::min(4 * step.k / static_cast<size_t>(comm.size()) + 1024, d);
    const auto parts = gather(ctx, comm, chosen_.view(), usual, d, control);
    if (control.nonfinite_rank >= 0) return;
    for (int rank = 0; rank < comm.size(); ++rank)
      check_region(parts[rank], rank, comm.size(), rank);

    keep(parts, step.k);
    residual_return_.missing(ctx, mine.view(), kept_.index_span(), step.residual);
    return_rounding(ctx, step.residual);
    const SparseView sum = kept_.view();
    process_sum_(ctx, comm, {&sum, 1}, step.gradient);
  }

  std::span<std::byte> state() override { return std::as_writable_bytes(std::span(&state_, 1)); }

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    return overhead(ranks) + codec_.expected_bytes(2.0 * (ranks - 1), entries, ranks, d);
  }
  uint64_t claimed_bytes(int ranks, size_t, const Traffic& load) const override {
    return overhead(ranks) + load.bytes;
  }
  // a step that is not exact: entries to their owners, and the sums from there by an allgather
  double seconds(const LinkCost& link, int ranks, size_t d, size_t k) const override {
    if (ranks == 1) return 0;
    const double entry = codec_.entry_seconds(link, k, d) + link.merge;
    return (ranks - 1 + tree_rounds(ranks)) * link.alpha +
           others_share(ranks) * 2 * static_cast<double>(k) * entry;
  }

 private:
  static uint64_t overhead(int ranks) {
    const uint64_t p = static_cast<uint64_t>(ranks);
    return p * (p - 1) * sizeof(uint64_t) + gather_overhead(ranks);
  }

  // sets the borders of the regions to the mean of the ranks' quantiles
  void average_regions(Context& ctx, Communicator& comm, const SparseVector& mine, size_t d) {
    const auto own = piece_borders(mine.index_span(), d);
    allgather(ctx, comm, std::as_bytes(std::span(own)), sizeof own, knots_, sizeof own);
    load_.bytes += static_cast<uint64_t>(comm.size() - 1) * (sizeof own + sizeof(uint64_t));
    std::array<uint64_t, own.size()> sums{};
    for (int rank = 0; rank < comm.size(); ++rank) {
      std::array<uint32_t, own.size()> knots;
      std::memcpy(knots.data(), knots_.exactly(rank, sizeof knots).data(), sizeof knots);
      for (size_t j = 0; j < knots.size(); ++j) sums[j] += knots[j];
    }
    for (size_t j = 0; j < sums.size(); ++j)
      state_.knots[j] = static_cast<uint32_t>(sums[j] / static_cast<uint64_t>(comm.size()));
  }

  // Fault unless the entries that rank `from` sent are in the region of `owner`
  void check_region(const SparseView& entries, int owner, int ranks, int from) const {
    const auto& indices = entries.indices;
    check<Fault>(indices.empty() || (indices.front() >= state_.border(owner, ranks) &&
                                     indices.back() < state_.border(owner + 1, ranks)),
                 "[oktopk] rank {} sent entries outside of the region of rank {}", from, owner);
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
      check_region(theirs, self, ranks, from);
      merge_(reduced_.view(), theirs, SIZE_MAX, next_);
      std::swap(reduced_, next_);
    }
  }

  // a message is the length of the part and the part; beyond the usual length the rest follows in a
  // second message
  SparseView swap_parts(Context& ctx, Communicator& comm, int to, const SparseView& out, int from,
                        size_t usual, size_t d) {
    const size_t limit = codec_.bound(usual);
    message_.resize(std::max(message_.size(), sizeof(uint64_t) + codec_.bound(out.indices.size())));
    uint64_t bytes = codec_.encode(out, message_.data() + sizeof bytes);
    std::memcpy(message_.data(), &bytes, sizeof bytes);
    load_ += {out.indices.size(), bytes};
    const ConstBytes message(message_.data(), sizeof bytes + bytes);
    const size_t length = exchange_variable("oktopk", ctx, comm, to, message, from, 1, limit,
                                            codec_.bound(d), incoming_);
    return codec_.decode({incoming_.data() + sizeof bytes, length}, d, from, received_);
  }

  // chosen_: the sums of this rank's region that are sent to all
  void choose(const std::optional<RoundingDraws>& draws) {
    chosen_.reserve(reduced_.count);
    const uint32_t least = thresholds_.least_sum_bits();
    size_t count = 0;
    for (size_t i = 0; i < reduced_.count; ++i) {
      chosen_.indices[count] = reduced_.indices[i];
      chosen_.values[count] = reduced_.values[i];
      count += magnitude_bits(reduced_.values[i]) >= least;
    }
    chosen_.count = count;
    codec_.round(chosen_, nullptr, {}, draws);
  }

  // kept_: the chosen sums of all ranks, region after region; an exact step prunes them to k
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
    merge_(all_.view(), {}, thresholds_.exact() ? k : SIZE_MAX, kept_);
    thresholds_.update_global(kept_, k);
  }

  // returns to the residual what rounding took off those sums of this rank that were kept
  void return_rounding(Context& ctx, std::span<float> residual) {
    if (codec_.exact() || residual.empty()) return;
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

  OkTopkState state_;
  ThresholdTracker thresholds_;
  TopkMerge merge_;
  ProcessSum process_sum_;
  SparseVector reduced_, next_, received_, chosen_, all_, kept_, rounded_off_;
  GatheredBlocks knots_;
  std::vector<uint32_t> borders_;  // of the regions, without the first and the end
  std::vector<std::byte> message_, incoming_;
};

const bool oktopk_exchange = exchanges().add(
    {"oktopk",
     "sends entries to the owner of their region, which sends the largest sums to all",
     {.make = make_exchange<OkTopk>, .one_threshold = true},
     {{.key = "exact_every",
       .value = "32",
       .help = "steps between exact thresholds and regions",
       .least = 1}}});
const bool oktopk_sparsifier =
    sparsifiers().add({"oktopk",
                       "Ok-Topk: thresholds reused for several steps, sparse allreduce by regions",
                       {.selector = "oktopk", .exchange = "oktopk"}});

}  // namespace

}  // namespace tw
