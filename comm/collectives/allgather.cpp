// Bruck's allgather (Bruck et al. 1997) for blocks of any sizes. In round k, with d = 2^k, rank r
// holds the blocks of ranks r .. r+d-1; it sends the first min(d, P-d) of them to r-d and receives
// as many from r+d, each time in one exchange_variable() with the blocks' sizes as its lengths.
//
// Over all ranks: (P-1) (sum of sizes + 8 P) bytes. Per rank ceil(log2 P) messages, and one more in
// each round in which the blocks exceed what was expected.

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.h"
#include "comm/collectives/exchange_variable.h"

namespace tw {
namespace {

constexpr size_t kSizeBytes = sizeof(uint64_t);

/// Grows the buffer to `bytes` and keeps its contents; never shrinks.
void reserve(std::vector<std::byte>& memory, size_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
}

void copy(std::byte* to, ConstBytes from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

double allgather_seconds(const LinkCost& link, int ranks, double n) {
  return tree_rounds(ranks) * link.alpha + others_share(ranks) * n * link.beta;
}

ConstBytes GatheredBlocks::operator[](int rank) const {
  const int position = (rank - self_ + ranks_) % ranks_;
  return {payload() + offsets_[position], offsets_[position + 1] - offsets_[position]};
}

ConstBytes GatheredBlocks::exactly(int rank, size_t bytes) const {
  const ConstBytes block = (*this)[rank];
  check<Fault>(block.size() == bytes, "[allgather] rank {} sent {} bytes; expected {}", rank,
               block.size(), bytes);
  return block;
}

void allgather(Context& ctx, Communicator& comm, ConstBytes mine, size_t expected,
               GatheredBlocks& blocks, size_t most) {
  const OperationScope operation(comm, "allgather");
  const int ranks = comm.size(), rank = comm.rank();
  check<Fault>(mine.size() <= most, "[allgather] the block of rank {} has {} bytes; at most {}",
               rank, mine.size(), most);
  const size_t table = ranks * kSizeBytes;
  blocks.ranks_ = ranks;
  blocks.self_ = rank;
  blocks.offsets_.assign(ranks + 1, 0);
  reserve(blocks.memory_, table + std::max(mine.size(), ranks * expected));
  reserve(blocks.incoming_, (ranks / 2) * (kSizeBytes + expected));

  copy(blocks.payload(), mine);
  blocks.size_at(0) = blocks.offsets_[1] = mine.size();

  for (int held = 1; held < ranks; held *= 2) {
    const int count = std::min(held, ranks - held);
    const int to = (rank - held + ranks) % ranks, from = (rank + held) % ranks;
    const size_t sizes = count * kSizeBytes;
    const ConstBytes out{blocks.payload() - sizes, sizes + blocks.offsets_[count]};
    const size_t received = exchange_variable("allgather", ctx, comm, to, out, from, count,
                                              count * expected, most, blocks.incoming_);
    const ConstBytes in(blocks.incoming_);
    copy(reinterpret_cast<std::byte*>(&blocks.size_at(held + count - 1)), in.first(sizes));
    for (int i = held; i < held + count; ++i)
      blocks.offsets_[i + 1] = blocks.offsets_[i] + blocks.size_at(i);
    reserve(blocks.memory_, table + blocks.offsets_[held + count]);
    copy(blocks.payload() + blocks.offsets_[held], in.subspan(sizes, received));
  }
}

}  // namespace tw
