// Bruck's allgather (Bruck et al. 1997) for blocks of any sizes. In round k, with d = 2^k, rank r
// holds the blocks of ranks r .. r+d-1; it sends the first min(d, P-d) of them to r-d and receives
// as many from r+d. Message: the sizes of the blocks, then the blocks one behind the other.
//
// The receiver cannot know how much comes, only how much is expected: the message carries at most
// `expected` bytes per block; the sizes in it tell how much follows in a second message.
//
// Over all ranks: (P-1) (sum of sizes + 8 P) bytes. Per rank ceil(log2 P) messages, and one more in
// each round that exceeds what was expected.

#include <algorithm>
#include <cstring>

#include "comm/collectives/collectives.h"

namespace tw {
namespace {

constexpr size_t kSizeBytes = sizeof(uint64_t);

/// Makes room for `bytes`, keeping what is there; never shrinks.
void reserve(std::vector<std::byte>& memory, size_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
}

void copy(std::byte* to, ConstBytes from) {
  if (!from.empty()) std::memcpy(to, from.data(), from.size());
}

}  // namespace

ConstBytes GatheredBlocks::operator[](int rank) const {
  const int position = (rank - self_ + ranks_) % ranks_;
  return {payload() + offsets_[position], offsets_[position + 1] - offsets_[position]};
}

void allgather(Context& ctx, Communicator& comm, ConstBytes mine, size_t expected,
               GatheredBlocks& blocks) {
  const OperationScope doing(comm, "allgather");
  const int ranks = comm.size(), rank = comm.rank();
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
    const size_t sizes = count * kSizeBytes, limit = count * expected;

    // sizes and as much of the blocks as was expected
    const size_t outgoing = blocks.offsets_[count], out_first = std::min(outgoing, limit);
    const Bytes in{blocks.incoming_.data(), sizes + limit};
    const size_t received =
        comm.exchange(ctx, to, {blocks.payload() - sizes, sizes + out_first}, from, in);
    check<Fault>(received >= sizes, "[allgather] rank {} sent {} bytes, too few for {} sizes", from,
                 received, count);
    copy(reinterpret_cast<std::byte*>(&blocks.size_at(held + count - 1)), in.first(sizes));
    for (int i = held; i < held + count; ++i)
      blocks.offsets_[i + 1] = blocks.offsets_[i] + blocks.size_at(i);
    const size_t incoming = blocks.offsets_[held + count] - blocks.offsets_[held];
    const size_t in_first = std::min(incoming, limit);
    check<Fault>(received == sizes + in_first,
                 "[allgather] rank {} sent {} bytes where {} were announced", from, received,
                 sizes + in_first);
    reserve(blocks.memory_, table + blocks.offsets_[held + count]);
    std::byte* const end = blocks.payload() + blocks.offsets_[held];
    copy(end, in.subspan(sizes, in_first));

    // the rest
    if (outgoing == out_first && incoming == in_first) continue;
    const size_t rest = comm.exchange(
        ctx, outgoing > out_first ? to : -1, {blocks.payload() + out_first, outgoing - out_first},
        incoming > in_first ? from : -1, {end + in_first, incoming - in_first});
    check<Fault>(rest == incoming - in_first, "[allgather] rank {} sent {} bytes; {} were missing",
                 from, rest, incoming - in_first);
  }
}

}  // namespace tw
