// The sparse exchange: every rank's entries to every rank, summed there in rank order.
// Block of a rank with n entries: control word 16 bytes, n indices uint32, n values float32.
//
// Bytes over all ranks: (P-1) (24 P + 8 N) for N entries of all ranks together; 8 of the 24 are
// the size that the allgather itself sends.

#include <cstring>

#include "comm/collectives.h"
#include "sparsify/exchange.h"
#include "sparsify/sparse_sum.h"

namespace tw {

namespace {

static_assert(sizeof(ControlWord) == 16);

constexpr size_t block_bytes(size_t entries) {
  return sizeof(ControlWord) + entries * (sizeof(uint32_t) + sizeof(float));
}

class SparseAllgather : public Exchange {
 public:
  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    // selectors send about k; what exceeds the estimate costs one more message, nothing else
    const size_t expected = block_bytes(std::min(step.k + step.k / 3, step.gradient.size()));
    allgather(ctx, comm, write_block(*step.mine, control), expected, blocks_);

    parts_.clear();
    for (int rank = 0; rank < comm.size(); ++rank)
      parts_.push_back(read_block(rank, step.gradient.size(), control));
    if (control.nonfinite_rank < 0) sparse_sum(ctx, parts_, step.gradient);
  }

  uint64_t wire_bytes(int ranks, size_t, size_t entries) const override {
    const uint64_t p = static_cast<uint64_t>(ranks);
    return (p - 1) * (24 * p + 8 * entries);
  }

 private:
  ConstBytes write_block(const SparseVector& mine, const Control& control) {
    const size_t bytes = block_bytes(mine.count), indices = mine.count * sizeof(uint32_t);
    if (message_.size() < bytes) message_.resize(bytes + bytes / 2);
    const ControlWord word = pack(control);
    std::byte* to = message_.data();
    std::memcpy(to, &word, sizeof word);
    if (mine.count == 0) return {to, bytes};
    std::memcpy(to + sizeof word, mine.indices.data(), indices);
    std::memcpy(to + sizeof word + indices, mine.values.data(), mine.count * sizeof(float));
    return {to, bytes};
  }

  SparseView read_block(int rank, size_t d, Control& control) {
    const ConstBytes block = blocks_[rank];
    const size_t count = block.size() < block_bytes(0) ? 0 : (block.size() - block_bytes(0)) / 8;
    check<Fault>(block.size() == block_bytes(count),
                 "[allgather] rank {} sent a block of {} bytes, which is no sparse vector", rank,
                 block.size());
    ControlWord word;
    std::memcpy(&word, block.data(), sizeof word);
    merge(control, rank, word);
    const std::byte* entries = block.data() + sizeof word;
    const std::span indices(reinterpret_cast<const uint32_t*>(entries), count);
    const std::span values(reinterpret_cast<const float*>(entries + indices.size_bytes()), count);
    check<Fault>(count == 0 || indices.back() < d,
                 "[allgather] rank {} sent index {} of a vector of {} elements", rank,
                 count == 0 ? 0 : indices.back(), d);
    return {indices, values};
  }

  std::vector<std::byte> message_;
  GatheredBlocks blocks_;
  std::vector<SparseView> parts_;
};

const bool registered =
    exchanges().add({"allgather", "sends every rank's entries to all, summed in rank order",
                     [](const Settings&) -> std::unique_ptr<Exchange> {
                       return std::make_unique<SparseAllgather>();
                     }});

}  // namespace

}  // namespace tw
