// Bidirectional exchange: every rank sends and receives in every round. Two halves, each
// ceil(log2 P) rounds for any P:
//   reduce-scatter  chunk c ends as the sum over all ranks at place c
//   allgather       chunk c goes from place c to everybody
// At powers of two they send what recursive halving and doubling (van de Geijn 1994; Rabenseifner
// 2004) send. Other P use the same circulant pattern: a round that leaves s chunks of s' exchanges
// the chunks s .. s'-1 places ahead with the rank s places ahead (Bruck et al. 1997; Traff 2024,
// arXiv 2410.14234). Every chunk is added up at one rank and copied from there: the same bits
// everywhere.
//   allreduce  reduce-scatter, allgather
//   broadcast  scatter from the root along a binomial tree, allgather
//   reduce     reduce-scatter, gather to the root along a binomial tree
//
// Over all ranks: either half P ceil(log2 P) messages and (P-1) 4n bytes; the tree P-1 messages,
// and for each place v > 0 the chunks of its subtree, v .. v + (lowest bit of v) - 1.
// Seconds, with L = ceil(log2 P): broadcast 2L alpha + 2(P-1)/P n beta; reduce and allreduce also
// (P-1)/P n gamma. Nothing beats the allreduce when all links are alike.

#include <algorithm>
#include <bit>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/ops/vector.h"

namespace tw {
namespace {

constexpr const char* kName = "be";

/// A range of chunks that may run over the last one to the first: one or two pieces of memory.
template <class T>
struct Pieces {
  std::span<T> first, second;
  size_t size() const { return first.size() + second.size(); }
};

/// `count` chunks from chunk `from` on, around.
template <class T>
Pieces<T> around(std::span<T> data, int ranks, int from, int count) {
  from %= ranks;
  const int end = std::min(ranks, from + count);
  return {chunks(data, ranks, from, end), chunks(data, ranks, 0, from + count - end)};
}

/// Wherever the vectors lie.
template <class T>
void copy_to(Context& ctx, std::span<T> x, std::span<T> y) {
  copy_bytes(ctx, std::as_bytes(x), std::as_writable_bytes(y.first(x.size())));
}

/// The pieces as one message: where they lie, or copied to `room`.
template <class T>
std::span<T> joined(Context& ctx, const Pieces<T>& pieces, std::span<T> room) {
  if (pieces.second.empty()) return pieces.first;
  if (pieces.first.empty()) return pieces.second;
  copy_to(ctx, pieces.first, room);
  copy_to(ctx, pieces.second, room.subspan(pieces.first.size()));
  return room.first(pieces.size());
}

/// How many chunks a rank still holds after round 0, 1, ... of a reduce-scatter: P/2, P/4, ... 1,
/// rounded up.
int held_after(int ranks, int round) {
  for (; round >= 0; --round) ranks = (ranks + 1) / 2;
  return ranks;
}

int rounds_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

void reduce_scatter(Context& ctx, Communicator& comm, const RelativeRank& order,
                    std::span<float> data, std::span<float> scratch) {
  const int ranks = comm.size(), self = order.place(comm.rank());
  for (int round = 0; round < rounds_of(ranks); ++round) {
    const int before = held_after(ranks, round - 1), held = held_after(ranks, round);
    // what goes and what comes are different chunks, so both fit in the scratch
    const auto out = joined(ctx, around(data, ranks, self + held, before - held), scratch);
    const Pieces sums = around(data, ranks, self, before - held);
    const std::span<float> in = scratch.last(sums.size());
    exchange_exactly(kName, ctx, comm, order.rank((self + held) % ranks), out,
                     order.rank((self - held + ranks) % ranks), in);
    ops::add(ctx, in.first(sums.first.size()), sums.first);
    ops::add(ctx, in.subspan(sums.first.size()), sums.second);
  }
}

template <class T>
void allgather_chunks(Context& ctx, Communicator& comm, const RelativeRank& order,
                      std::span<T> data, std::span<T> scratch) {
  const int ranks = comm.size(), self = order.place(comm.rank());
  for (int round = rounds_of(ranks) - 1; round >= 0; --round) {
    const int after = held_after(ranks, round - 1), held = held_after(ranks, round);
    const auto out = joined(ctx, around(data, ranks, self, after - held), scratch);
    const Pieces<T> news = around(data, ranks, self + held, after - held);
    const bool in_place = news.first.empty() || news.second.empty();
    const std::span<T> in = !in_place            ? scratch.last(news.size())
                            : news.first.empty() ? news.second
                                                 : news.first;
    exchange_exactly(kName, ctx, comm, order.rank((self - held + ranks) % ranks),
                     std::as_bytes(out), order.rank((self + held) % ranks),
                     std::as_writable_bytes(in));
    if (in_place) continue;
    copy_to(ctx, in.first(news.first.size()), news.first);
    copy_to(ctx, in.subspan(news.first.size()), news.second);
  }
}

/// Below place v of the binomial tree lie the chunks v .. v + (lowest bit of v) - 1.
template <class T>
std::span<T> below(std::span<T> data, int ranks, int place, int lowest_bit) {
  return chunks(data, ranks, place, std::min(ranks, place + lowest_bit));
}

void scatter(Context& ctx, Communicator& comm, const RelativeRank& order, Bytes data) {
  const int ranks = comm.size(), self = order.place(comm.rank());
  for (int bit = static_cast<int>(std::bit_ceil(static_cast<unsigned>(ranks))) / 2; bit > 0;
       bit /= 2) {
    if (self % (2 * bit) == bit)
      exchange_exactly(kName, ctx, comm, -1, {}, order.rank(self - bit),
                       below(data, ranks, self, bit));
    else if (self % (2 * bit) == 0 && self + bit < ranks)
      comm.send(ctx, order.rank(self + bit), below(data, ranks, self + bit, bit));
  }
}

void gather(Context& ctx, Communicator& comm, const RelativeRank& order, std::span<float> data) {
  const int ranks = comm.size(), self = order.place(comm.rank());
  for (int bit = 1; bit < ranks; bit *= 2) {
    if (self % (2 * bit) == bit)
      comm.send(ctx, order.rank(self - bit), std::as_bytes(below(data, ranks, self, bit)));
    else if (self % (2 * bit) == 0 && self + bit < ranks)
      exchange_exactly(kName, ctx, comm, -1, {}, order.rank(self + bit),
                       below(data, ranks, self + bit, bit));
  }
}

void allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  check_scratch(kName, data, scratch);
  const RelativeRank order(comm, 0);
  reduce_scatter(ctx, comm, order, data, scratch.first(data.size()));
  allgather_chunks(ctx, comm, order, data, scratch.first(data.size()));
}

void reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
            std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  check_scratch(kName, data, scratch);
  const RelativeRank order(comm, root);
  reduce_scatter(ctx, comm, order, data, scratch.first(data.size()));
  gather(ctx, comm, order, data);
}

Broadcast make_broadcast(const Settings&) {
  return [scratch = std::make_shared<Buffer>()](Context& ctx, Communicator& comm, int root,
                                                Bytes data) {
    const OperationScope doing(comm, kName);
    if (scratch->bytes() < data.size()) *scratch = Buffer(ctx.device(), data.size());
    const RelativeRank order(comm, root);
    scatter(ctx, comm, order, data);
    allgather_chunks(ctx, comm, order, data, scratch->as<std::byte>().first(data.size()));
  };
}

const bool registered =
    broadcasts().add({"be", "scatter along a tree, allgather; for long vectors", make_broadcast}) &&
    reduces().add({"be", "reduce-scatter by halving, gather along a tree; for long vectors",
                   [](const Settings&) -> Reduce { return reduce; }}) &&
    allreduces().add({"be", "reduce-scatter by halving, allgather by doubling; for any length",
                      [](const Settings&) -> Allreduce { return allreduce; }});

}  // namespace
}  // namespace tw
