// gTop-k (Shi et al., ICDCS 2019, arXiv 1901.04359), for any number of ranks: entries are merged up
// a binomial tree, every merge keeps the k largest magnitudes, and the root broadcasts the result.
// In round r the ranks that are multiples of 2^r, counted from the root, are active; odd multiples
// send to the rank 2^r before them and stop. No barrier separates the rounds. No message holds more
// than k entries; a rank that selected more prunes before it sends.
//
// put_back=paper (the default): entries that a rank selected and the result lacks go back to its
// residual. An entry pruned on one branch is lost if its index survives on another.
// put_back=conserve: the rank that prunes or rounds keeps the difference in its own residual, so
// nothing is lost. Most of it falls to the root; rotate=true makes rank step mod P the root, so
// that the residuals spread.
//
// Bytes over all ranks: 2 (P-1) (16 + those of k entries, 8 k if plain): P-1 messages up, P-1 down.
// Seconds: 2 ceil(log2 P) (alpha + 2 k beta) + ceil(log2 P) merges of 2 k entries.

#include "comm/collectives/common.h"
#include "sparsify/encoding/residual_return.h"
#include "sparsify/encoding/sparse_message.h"
#include "sparsify/exchanges/process_sum.h"
#include "sparsify/exchanges/topk_merge.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class GTopK : public Exchange {
 public:
  GTopK(const Settings& settings, const ExchangePlan& plan)
      : codec_(settings),
        plan_(plan),
        conserve_(settings.text("gtopk.put_back") == "conserve"),
        rotate_(settings.flag("gtopk.rotate")) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const int ranks = comm.size();
    const int root = rotate_ ? static_cast<int>(step.step % static_cast<uint64_t>(ranks)) : 0;
    const RelativeRank order(comm, root);
    load_ = {};
    incoming_.resize(block_bound(codec_, step.k));
    if (codec_.scaled()) {  // the scales are those of the entries that are sent
      pruned_.count = 0;
      pruned_.reserve(step.mine->count);
      prune_to_k(*step.mine, step.k, keys_, &pruned_);
      scatter_add(ctx, pruned_.view(), step.residual);
    }
    residual_return_.rounding(ctx, codec_, *step.mine, step.residual,
                              plan_.draws(step.step, comm.rank(), comm.rank()));

    merge_up(ctx, comm, order, step, control);
    const SparseView sum = broadcast_down(ctx, comm, order, step, control);
    if (control.nonfinite_rank >= 0) return;
    if (!conserve_) residual_return_.missing(ctx, step.mine->view(), sum.indices, step.residual);
    process_sum_(ctx, comm, {&sum, 1}, step.gradient);
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    return overhead(ranks) + codec_.expected_bytes(2.0 * (ranks - 1), entries, ranks, d);
  }
  uint64_t claimed_bytes(int ranks, size_t, const Traffic& load) const override {
    return overhead(ranks) + load.bytes;
  }
  // hclhkbu/gtopkssgd, scripts/icdcs2019/communication.py: up a tree that merges, and down again
  double seconds(const LinkCost& link, int ranks, size_t d, size_t k) const override {
    const double entry = codec_.entry_seconds(link, k, d) + link.merge;
    return tree_rounds(ranks) * 2 * (link.alpha + static_cast<double>(k) * entry);
  }

 private:
  static uint64_t overhead(int ranks) {
    return 2 * static_cast<uint64_t>(ranks - 1) * sizeof(ControlWord);
  }

  // merged_: the merged entries of this rank's subtree, rounded
  void merge_up(Context& ctx, Communicator& comm, const RelativeRank& order,
                const ExchangeStep& step, Control& control) {
    // put_back=paper keeps nothing at the rank that prunes or rounds
    const std::span<float> keeps = conserve_ ? step.residual : std::span<float>{};
    merge_entries(ctx, step.mine->view(), {}, step.k, keeps, merged_);
    merge(control, comm.rank(), pack(control));

    const int ranks = comm.size(), self = order.relative(comm.rank());
    for (int distance = 1; distance < ranks; distance *= 2) {
      if (self & distance) return send(ctx, comm, order.rank(self - distance), control);
      if (self + distance >= ranks) continue;
      const int from = order.rank(self + distance);
      const size_t bytes = comm.receive(ctx, from, incoming_);
      const SparseView theirs = read_block(codec_, {incoming_.data(), bytes}, from,
                                           step.gradient.size(), control, received_);
      merge_entries(ctx, merged_.view(), theirs, step.k, keeps, next_);
      residual_return_.rounding(ctx, codec_, next_, keeps,
                                plan_.draws(step.step, from, comm.rank()));
      std::swap(merged_, next_);
    }
  }

  void merge_entries(Context& ctx, const SparseView& a, const SparseView& b, size_t k,
                     std::span<float> keeps, SparseVector& out) {
    merge_(a, b, k, out, &pruned_);
    if (!keeps.empty()) scatter_add(ctx, pruned_.view(), keeps);
  }

  // down the same binomial tree; returns the sum
  SparseView broadcast_down(Context& ctx, Communicator& comm, const RelativeRank& order,
                            const ExchangeStep& step, Control& control) {
    const int ranks = comm.size(), self = order.relative(comm.rank());
    SparseView sum = merged_.view();
    ConstBytes block;
    if (self == 0) block = write_block(codec_, control, sum, message_);
    for (int distance = 1; distance < ranks; distance *= 2) {
      if (self < distance) {
        if (self + distance >= ranks) continue;
        comm.send(ctx, order.rank(self + distance), block);
        load_ += {sum.indices.size(), block.size() - sizeof(ControlWord)};
      } else if (self < 2 * distance) {
        const int from = order.rank(self - distance);
        block = {incoming_.data(), comm.receive(ctx, from, incoming_)};
        sum = read_block(codec_, block, from, step.gradient.size(), control, received_);
      }
    }
    return sum;
  }

  void send(Context& ctx, Communicator& comm, int to, const Control& control) {
    const SparseView entries = merged_.view();
    const ConstBytes block = write_block(codec_, control, entries, message_);
    comm.send(ctx, to, block);
    load_ += {entries.indices.size(), block.size() - sizeof(ControlWord)};
  }

  SparseCodec codec_;
  ExchangePlan plan_;
  bool conserve_, rotate_;
  TopkMerge merge_;
  ProcessSum process_sum_;
  ResidualReturn residual_return_;
  SparseVector merged_, next_, received_, pruned_;
  std::vector<std::byte> message_, incoming_;
  std::vector<uint64_t> keys_;
};

const bool gtopk_exchange = exchanges().add(
    {"gtopk",
     "merges entries up a tree, keeps the k largest per merge, broadcasts the result",
     {.make = make_exchange<GTopK>, .one_threshold = true},
     {{"put_back",
       "paper",
       "paper: pruned entries return to their senders; conserve: the rank that prunes keeps them",
       {"paper", "conserve"}},
      {"rotate", "false", "rank (step mod P) is the root of the tree instead of rank 0"}}});
const bool gtopk_sparsifier = sparsifiers().add({"gtopk",
                                                 "exact top-k, error feedback, gTop-k tree",
                                                 {.selector = "topk", .exchange = "gtopk"}});

}  // namespace

}  // namespace tw
