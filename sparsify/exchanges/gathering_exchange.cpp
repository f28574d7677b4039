#include "sparsify/exchanges/gathering_exchange.h"

#include <algorithm>

namespace tw {

uint64_t GatheringExchange::wire_bytes(int ranks, size_t d, size_t entries) const {
  const double blocks = static_cast<double>(ranks) * (ranks - 1);
  return gather_overhead(ranks) + codec_.expected_bytes(blocks, entries, ranks, d);
}

uint64_t GatheringExchange::claimed_bytes(int ranks, size_t, const Traffic& load) const {
  return gather_overhead(ranks) + load.bytes;
}

// Bruck et al. 1997
double GatheringExchange::seconds(const LinkCost& link, int ranks, size_t d, size_t k) const {
  return tree_rounds(ranks) * link.alpha +
         (ranks - 1) * static_cast<double>(k) * (codec_.entry_seconds(link, k, d) + link.merge);
}

std::span<const SparseView> GatheringExchange::gather(Context& ctx, Communicator& comm,
                                                      const SparseView& mine, size_t usual,
                                                      size_t d, Control& control) {
  const size_t expected = sizeof(ControlWord) + usual * (sizeof(uint32_t) + sizeof(float));
  const ConstBytes block = write_block(codec_, control, mine, message_);
  allgather(ctx, comm, block, expected, blocks_, block_bound(codec_, d));
  const uint64_t others = static_cast<uint64_t>(comm.size() - 1);
  load_ += {others * mine.indices.size(), others * (block.size() - sizeof(ControlWord))};

  decoded_.resize(comm.size());
  parts_.clear();
  for (int rank = 0; rank < comm.size(); ++rank)
    parts_.push_back(read_block(codec_, blocks_[rank], rank, d, control, decoded_[rank]));
  return parts_;
}

std::span<const SparseView> GatheringExchange::gather_selected(Context& ctx, Communicator& comm,
                                                               const ExchangeStep& step,
                                                               Control& control) {
  load_ = {};
  residual_return_.rounding(ctx, codec_, *step.mine, step.residual,
                            plan_.draws(step.step, comm.rank(), 0));
  // most selectors send at most 2k entries; a longer block costs one more message
  const size_t d = step.gradient.size(), usual = std::min(2 * step.k, d);
  return gather(ctx, comm, step.mine->view(), usual, d, control);
}

}  // namespace tw
