// Recursive halving and doubling (also: bidirectional exchange, hence the alias be): all ranks send
// and receive in every round. Two halves, each ceil(log2 P) rounds for any P; ranks are counted
// from the root:
//   reduce-scatter  rank c ends with the sum of chunk c over all ranks
//   allgather       chunk c goes from rank c to all ranks
// For P a power of two the messages are those of recursive halving and doubling (van de Geijn 1994;
// Rabenseifner 2004). Other P use the same circulant pattern: in a reduce-scatter round from s' to
// s chunks, rank c sends chunks c+s .. c+s'-1 to rank c+s; the allgather reverses the rounds (Bruck
// et al. 1997; Traff 2024, arXiv 2410.14234). One rank sums each chunk and the others copy it: the
// same bits on all ranks.
//   allreduce  reduce-scatter, allgather
//   broadcast  scatter from the root along a binomial tree, allgather
//   reduce     reduce-scatter, gather to the root along a binomial tree
//
// Over all ranks: each of the two halves P ceil(log2 P) messages and (P-1) 4n bytes; the tree has
// P-1 messages; that of rank v > 0 holds the chunks of its subtree, v .. v + (lowest bit of v) - 1,
// below P.
// Seconds, with L = ceil(log2 P): broadcast 2L alpha + 2(P-1)/P n beta; reduce and allreduce also
// (P-1)/P n gamma. The allreduce is optimal when all links are equal.

#include <algorithm>
#include <bit>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "comm/collectives/wrapped_range.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/ops/vector.h"

namespace tw::recursive_halving {
namespace {

constexpr const char* kName = "recursive_halving";

/// Copies x to the front of y, in host or device memory.
template <class T>
void copy_to(Context& ctx, std::span<T> x, std::span<T> y) {
  copy_bytes(ctx, std::as_bytes(x), std::as_writable_bytes(y.first(x.size())));
}

/// The range as one message: its own memory if contiguous, else copied to `copy`.
template <class T>
std::span<T> joined(Context& ctx, const WrappedRange<T>& range, std::span<T> copy) {
  if (range.contiguous()) return range.whole();
  copy_to(ctx, range.first, copy);
  copy_to(ctx, range.second, copy.subspan(range.first.size()));
  return copy.first(range.size());
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
  const int ranks = comm.size(), self = order.relative(comm.rank());
  for (int round = 0; round < rounds_of(ranks); ++round) {
    const int before = held_after(ranks, round - 1), held = held_after(ranks, round);
    // the chunks sent and those received are different ones, so both fit in the scratch: the first
    // at its front, the second at its end
    const WrappedRange sent(data, ranks, self + held, before - held);
    const WrappedRange sums(data, ranks, self, before - held);
    const auto out = joined(ctx, sent, scratch);
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
  const int ranks = comm.size(), self = order.relative(comm.rank());
  for (int round = rounds_of(ranks) - 1; round >= 0; --round) {
    const int after = held_after(ranks, round - 1), held = held_after(ranks, round);
    const WrappedRange sent(data, ranks, self, after - held);
    const WrappedRange news(data, ranks, self + held, after - held);
    const auto out = joined(ctx, sent, scratch);
    const std::span<T> in = news.contiguous() ? news.whole() : scratch.last(news.size());
    exchange_exactly(kName, ctx, comm, order.rank((self - held + ranks) % ranks),
                     std::as_bytes(out), order.rank((self + held) % ranks),
                     std::as_writable_bytes(in));
    if (news.contiguous()) continue;
    copy_to(ctx, in.first(news.first.size()), news.first);
    copy_to(ctx, in.subspan(news.first.size()), news.second);
  }
}

/// The subtree of relative rank `first` in the binomial tree: chunks first .. first + lowest_bit
/// - 1.
template <class T>
std::span<T> below(std::span<T> data, int ranks, int first, int lowest_bit) {
  return chunks(data, ranks, first, std::min(ranks, first + lowest_bit));
}

void scatter(Context& ctx, Communicator& comm, const RelativeRank& order, Bytes data) {
  const int ranks = comm.size(), self = order.relative(comm.rank());
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
  const int ranks = comm.size(), self = order.relative(comm.rank());
  for (int bit = 1; bit < ranks; bit *= 2) {
    if (self % (2 * bit) == bit)
      comm.send(ctx, order.rank(self - bit), std::as_bytes(below(data, ranks, self, bit)));
    else if (self % (2 * bit) == 0 && self + bit < ranks)
      exchange_exactly(kName, ctx, comm, -1, {}, order.rank(self + bit),
                       below(data, ranks, self + bit, bit));
  }
}

void allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
  const OperationScope operation(comm, kName);
  check_scratch(kName, data, scratch);
  const RelativeRank order(comm, 0);
  reduce_scatter(ctx, comm, order, data, scratch.first(data.size()));
  allgather_chunks(ctx, comm, order, data, scratch.first(data.size()));
}

void reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
            std::span<float> scratch) {
  const OperationScope operation(comm, kName);
  check_scratch(kName, data, scratch);
  const RelativeRank order(comm, root);
  reduce_scatter(ctx, comm, order, data, scratch.first(data.size()));
  gather(ctx, comm, order, data);
}

Broadcast make_broadcast(const Settings&) {
  return [scratch = std::make_shared<Buffer>()](Context& ctx, Communicator& comm, int root,
                                                Bytes data) {
    const OperationScope operation(comm, kName);
    scratch->grow(ctx.device(), data.size());
    const RelativeRank order(comm, root);
    scatter(ctx, comm, order, data);
    allgather_chunks(ctx, comm, order, data, scratch->as<std::byte>().first(data.size()));
  };
}

// Thakur, Rabenseifner & Gropp 2005, with Bruck's allgather instead of a ring in the broadcast
double broadcast_seconds(const LinkCost& link, int ranks, double n) {
  return 2 * (tree_rounds(ranks) * link.alpha + others_share(ranks) * n * link.beta);
}
double reduce_seconds(const LinkCost& link, int ranks, double n) {
  return broadcast_seconds(link, ranks, n) + others_share(ranks) * n * link.gamma;
}

/// What all ranks send along the tree, to or from its root, of a vector of n: rank v > 0 sends the
/// chunks of its subtree.
uint64_t on_the_tree(int ranks, size_t n) {
  const auto border = [&](int c) { return n * static_cast<size_t>(c) / ranks; };
  uint64_t sum = 0;
  for (int v = 1; v < ranks; ++v) sum += border(std::min(ranks, v + (v & -v))) - border(v);
  return sum;
}
// a broadcast cuts bytes into chunks, a reduce floats
uint64_t broadcast_more_bytes(int ranks, size_t n) { return on_the_tree(ranks, sizeof(float) * n); }
uint64_t reduce_more_bytes(int ranks, size_t n) { return sizeof(float) * on_the_tree(ranks, n); }

const bool recursive_halving_registered =
    broadcasts().add({kName,
                      "scatter along a tree, allgather; for long vectors",
                      {make_broadcast, broadcast_seconds, broadcast_more_bytes},
                      {},
                      {"be"}}) &&
    reduces().add(
        {kName,
         "reduce-scatter by halving, gather along a tree; for long vectors",
         {[](const Settings&) -> Reduce { return reduce; }, reduce_seconds, reduce_more_bytes},
         {},
         {"be"}}) &&
    allreduces().add({kName,
                      "reduce-scatter by halving, allgather by doubling; for any length",
                      {[](const Settings&) -> Allreduce { return allreduce; }, reduce_seconds},
                      {},
                      {"be"}});

}  // namespace
}  // namespace tw::recursive_halving
