// GatheringExchange: base of the exchanges that send the entries of every rank to all ranks, and
// their allgather.
#pragma once

#include "sparsify/encoding/residual_return.h"
#include "sparsify/encoding/sparse_message.h"

namespace tw {

class GatheringExchange : public Exchange {
 public:
  GatheringExchange(const Settings& settings, const ExchangePlan& plan)
      : codec_(settings), plan_(plan) {}

  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override;
  uint64_t claimed_bytes(int ranks, size_t d, const Traffic& load) const override;
  /// Every rank receives and adds the entries of all others.
  double seconds(const LinkCost& link, int ranks, size_t d, size_t k) const override;

 protected:
  /// Sends `mine` (rounded by the codec) to all ranks, adds it to load_, and merges the control
  /// words of all ranks. Returns the entries by rank, valid until the next call. `usual`: expected
  /// entries per block, the same on all ranks; a longer block costs one more message. Bytes over
  /// all ranks: (P-1) (24 P + encoded entries of all ranks).
  std::span<const SparseView> gather(Context& ctx, Communicator& comm, const SparseView& mine,
                                     size_t usual, size_t d, Control& control);
  /// The same for the selected entries of a step. Rounds them first; rounding errors go to the
  /// residual.
  std::span<const SparseView> gather_selected(Context& ctx, Communicator& comm,
                                              const ExchangeStep& step, Control& control);

  SparseCodec codec_;
  ExchangePlan plan_;
  ResidualReturn residual_return_;

 private:
  std::vector<std::byte> message_;
  GatheredBlocks blocks_;
  std::vector<SparseVector> decoded_;  // by rank
  std::vector<SparseView> parts_;
};

/// Bytes of an allgather of blocks without the encoded entries, over all ranks.
constexpr uint64_t gather_overhead(int ranks) {
  const uint64_t p = static_cast<uint64_t>(ranks);
  return (p - 1) * p * (sizeof(ControlWord) + sizeof(uint64_t));
}

}  // namespace tw
