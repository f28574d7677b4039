// GatheringExchange: what exchanges have in common that send every rank's entries to all.
#pragma once

#include <algorithm>

#include "sparsify/encoding/sparse_message.h"

namespace tw {

class GatheringExchange : public Exchange {
 public:
  explicit GatheringExchange(const Settings& settings) : wire_(settings), gathered_(wire_) {}

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    const double blocks = static_cast<double>(ranks) * (ranks - 1);
    return gather_overhead(ranks) + wire_.expected_bytes(blocks, entries, ranks, d);
  }
  uint64_t claimed_bytes(int ranks, size_t, const Traffic& load) const override {
    return gather_overhead(ranks) + load.bytes;
  }

 protected:
  /// Everybody's entries by rank; what the wire rounds off step.mine goes to the residual.
  std::span<const SparseView> gather(Context& ctx, Communicator& comm, const ExchangeStep& step,
                                     Control& control) {
    residual_return_.rounding(ctx, wire_, *step.mine, step.residual);
    // no selector means to send more (RedSync up to that); what exceeds it costs one more message
    const size_t d = step.gradient.size(), usual = std::min(2 * step.k, d);
    const auto parts = gathered_.gather(ctx, comm, step.mine->view(), usual, d, control);
    load_ = gathered_.load();
    return parts;
  }

  ResidualReturn residual_return_;

 private:
  SparseCodec wire_;
  GatheredEntries gathered_;
};

}  // namespace tw
