// ScaleCom (Chen et al., NeurIPS 2020, arXiv 2104.11125): in step t only rank t mod P, the leader,
// selects entries of its u = g + e. It broadcasts their indices, and all ranks sum their own u at
// these indices by a dense collective. The bytes per rank hardly grow with P, and no rank merges
// entries.
// What a rank sends is taken off its residual through a low-pass filter:
//   e = (1 - beta) e + beta (u - sent)          scalecom.beta; 1: error feedback without a filter
//
// With k = d every rank selects, and no indices are sent.
//
// Bytes over all ranks for k < d entries of the leader, with a bandwidth-optimal collective (ring):
// (P-1) (8 + 4 k) for the indices and 2 (P-1) 4 (k+1) for the values, half of the latter with
// 16-bit `allreduce.values`. Messages: ceil(log2 P) and those of the collective; beyond 2 k entries
// another ceil(log2 P). Seconds: ceil(log2 P) (alpha + k beta) and a ring over k values.

#include <cstring>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "engine/core/copy.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "sparsify/exchanges/value_sum.h"
#include "sparsify/kernels/selection.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class ScaleCom : public Exchange {
 public:
  explicit ScaleCom(const Settings& settings)
      : sum_(settings), kept_(static_cast<float>(1 - settings.number("scalecom.beta"))) {}

  bool selects(const Communicator& comm, const ExchangeStep& step) const override {
    return everything(step) || comm.rank() == leader(comm, step);
  }
  void prepare(Context& ctx, Communicator& comm, const ExchangeStep& step,
               Control& control) override {
    if (selects(comm, step)) return;
    ops::add(ctx, step.gradient, step.residual);
    control.record(name_nonfinite(ctx, step.residual));
  }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    SparseVector& mine = *step.mine;
    const size_t d = step.gradient.size();
    load_ = {};
    if (!everything(step)) {
      const int from = leader(comm, step);
      broadcast_indices(ctx, comm, from, step);
      if (comm.rank() != from && control.nonfinite == SIZE_MAX) {
        HostFloats u(ctx, step.residual);
        move_values(u.span(), 0, mine, 0);
        u.write();
      }
    }
    const size_t n = everything(step) ? d : mine.count;
    load_ += {n, n * sum_.value_bytes()};
    if (kept_ > 0 && control.nonfinite == SIZE_MAX) filter(ctx, step);
    sum_(ctx, comm, step, n, control);
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    const uint64_t k = entries / static_cast<size_t>(ranks);
    return (k < d ? index_bytes(ranks, k) : 0) + sum_.wire_bytes(ranks, k);
  }
  uint64_t claimed_bytes(int ranks, size_t, const Traffic& load) const override {
    const uint64_t indices = load.bytes - load.entries * sum_.value_bytes();
    return indices + sum_.wire_bytes(ranks, load.entries / static_cast<size_t>(ranks));
  }
  double seconds(const LinkCost& link, int ranks, size_t, size_t k) const override {
    return tree_rounds(ranks) * (link.alpha + static_cast<double>(k) * link.beta) +
           sum_.seconds(link, ranks, k);
  }
  bool sums_densely() const override { return true; }

 private:
  static bool everything(const ExchangeStep& step) { return step.k >= step.gradient.size(); }
  static int leader(const Communicator& comm, const ExchangeStep& step) {
    return static_cast<int>(step.step % static_cast<uint64_t>(comm.size()));
  }
  static uint64_t index_bytes(int ranks, size_t count) {
    return static_cast<uint64_t>(ranks - 1) * (sizeof(uint64_t) + count * sizeof(uint32_t));
  }

  // Leaves the leader's indices in step.mine. The first message down the binomial tree has their
  // number and up to 2 k of them; the same on all ranks, so that one message is enough for most
  // selectors.
  void broadcast_indices(Context& ctx, Communicator& comm, int from, const ExchangeStep& step) {
    SparseVector& mine = *step.mine;
    const size_t usual = std::min(2 * step.k, step.gradient.size());
    const size_t d = step.gradient.size();
    message_.resize(sizeof(uint64_t) + usual * sizeof(uint32_t));
    const RelativeRank order(comm, from);
    const int ranks = comm.size(), self = order.relative(comm.rank());
    uint64_t count = mine.count;
    size_t bytes = 0;
    if (self == 0) {
      std::memcpy(message_.data(), &count, sizeof count);
      bytes = sizeof count + std::min<size_t>(count, usual) * sizeof(uint32_t);
      if (count > 0)  // memcpy does not accept null
        std::memcpy(message_.data() + sizeof count, mine.indices.data(), bytes - sizeof count);
      load_.bytes += index_bytes(ranks, count);
    }
    for (int distance = 1; distance < ranks; distance *= 2) {
      if (self < distance && self + distance < ranks)
        comm.send(ctx, order.rank(self + distance), ConstBytes(message_).first(bytes));
      else if (self >= distance && self < 2 * distance)
        bytes = comm.receive(ctx, order.rank(self - distance), message_);
    }
    if (self > 0) {
      check<Fault>(bytes >= sizeof count, "[scalecom] rank {} sent {} bytes instead of a number",
                   from, bytes);
      std::memcpy(&count, message_.data(), sizeof count);
      check<Fault>(
          count <= d && bytes == sizeof count + std::min<size_t>(count, usual) * sizeof(uint32_t),
          "[scalecom] rank {} announces {} indices of {} in {} bytes", from, count, d, bytes);
      mine.reserve(count);
      mine.count = count;
      if (count > 0)
        std::memcpy(mine.indices.data(), message_.data() + sizeof count, bytes - sizeof count);
    }
    if (count > usual) {
      const std::span<uint32_t> rest(mine.indices.data() + usual, count - usual);
      broadcast(ctx, comm, from, std::as_writable_bytes(rest));
    }
    check<Fault>(ascend_below(mine.index_span(), d),
                 "[scalecom] the indices of rank {} do not ascend below {}", from, d);
  }

  // e holds u without the sent entries. Where nothing is sent it becomes u - (1 - beta) g, where an
  // entry is sent (1 - beta) (u - g).
  void filter(Context& ctx, const ExchangeStep& step) {
    // the update of plain SGD: e -= (1 - beta) g
    ops::sgd_update(ctx,
                    {.lr = kept_, .momentum = 0, .weight_decay = 0, .nesterov = false, .scale = 1},
                    {}, step.gradient, {}, step.residual);
    const SparseView sent = step.mine->view();
    scaled_.resize(sent.values.size());
    for (size_t i = 0; i < scaled_.size(); ++i) scaled_[i] = kept_ * sent.values[i];
    scatter_add(ctx, {sent.indices, scaled_}, step.residual);
  }

  ValueSum sum_;
  float kept_;  // 1 - beta
  std::vector<std::byte> message_;
  std::vector<float> scaled_;
};

const bool scalecom_exchange = exchanges().add(
    {"scalecom",
     "sums all ranks' values at the indices that one rank, in turn, selects",
     {.make = make_exchange<ScaleCom>, .one_rank_selects = true, .validate = DenseSum::validate},
     {{.key = "beta",
       .value = "1.0",
       .help = "share of a step in the residual's low-pass filter; 1: no filter",
       .least = 0.001,
       .most = 1}}});
const bool scalecom_sparsifier =
    sparsifiers().add({"scalecom",
                       "ScaleCom: one rank's exact top-k indices for all, in turn",
                       {.selector = "topk", .exchange = "scalecom"}});

}  // namespace

}  // namespace tw
