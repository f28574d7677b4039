// The sparse exchange: every rank's entries to every rank (Bruck's allgather), summed there in rank
// order.
//
// Bytes over all ranks: (P-1) (24 P + those of all ranks' N entries, 8 N if plain); of the 24, 16
// are the control word and 8 the size that the allgather itself sends.
// Messages: ceil(log2 P) a rank. Seconds: ceil(log2 P) alpha + 2 k (P-1) beta, k entries a rank.

#include "sparsify/entry_block.h"

namespace tw {

namespace {

class SparseAllgather : public Exchange {
 public:
  explicit SparseAllgather(const Settings& settings) : wire_(settings), gathered_(wire_) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    wire_.round(*step.mine, step.residual);
    // selectors send about k; what exceeds the estimate costs one more message, nothing else
    const size_t d = step.gradient.size(), usual = std::min(step.k + step.k / 3, d);
    const std::span<const SparseView> parts = gathered_.gather(
        ctx, comm, {step.mine->index_span(), step.mine->value_span()}, usual, d, control);
    load_ = gathered_.load();
    if (control.nonfinite_rank < 0) sparse_sum(ctx, parts, step.gradient);
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    const double blocks = static_cast<double>(ranks) * (ranks - 1);
    return gather_overhead(ranks) + wire_.expected_bytes(blocks, entries, ranks, d);
  }
  uint64_t claimed_bytes(int ranks, size_t, const WireLoad& load) const override {
    return gather_overhead(ranks) + load.bytes;
  }

 private:
  WireFormat wire_;
  GatheredEntries gathered_;
};

const bool registered =
    exchanges().add({"allgather", "sends every rank's entries to all, summed in rank order",
                     [](const Settings& settings) -> std::unique_ptr<Exchange> {
                       return std::make_unique<SparseAllgather>(settings);
                     }});

}  // namespace

}  // namespace tw
