// Linear pipelining (Wang, Wu, Bosilca, Vuduc & Xu 2017, arXiv 1611.04255): the ranks form a chain
// that starts at the root, the vector is cut into m blocks of b elements, and each rank works on
// one block while it receives the next. With ranks counted from the root:
//   broadcast  rank v receives block j from v-1 while it sends block j-1 to v+1
//   reduce     rank v receives block j from v+1 while it sends block j-1 to v-1, then adds
//   allreduce  a reduce to rank 0, which returns each finished block at once. Two neighbours swap
//              a block of the reduce for an earlier, finished one, so both directions are busy. A
//              rank swaps with the rank after it, then with the rank before it.
// Each element is summed along the chain, the last rank first: the same bits for every block size.
//
// Over all ranks: broadcast and reduce (P-1) m messages, (P-1) 4n bytes; allreduce twice that.
// Consecutive message times: broadcast and reduce P-2+m; allreduce 2(P-2+m)-1, and m+1 for P = 2.
// With the best block and long vectors, broadcast and reduce take n beta for any P.

#include <cmath>
#include <memory>
#include <optional>

#include "comm/blocks.h"
#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "comm/collectives/measure_link.h"
#include "engine/core/text.h"
#include "engine/ops/vector.h"

namespace tw::linear_pipeline {
namespace {

constexpr const char* kName = "linear_pipeline";

/// The setting's value as a positive number; nullopt for `auto`.
std::optional<double> given(const Settings& settings, const char* key) {
  const std::string& text = settings.text(key);
  if (text == "auto") return std::nullopt;
  const std::optional<double> value = number_in<double>(text);
  check(value && *value > 0 && *value < 1e18,
        "[linear_pipeline] {} is {}; expected auto or a number above 0", key, text);
  return value;
}

/// An operation takes the time of `fixed + per_block m` messages for m blocks.
struct PipelineSteps {
  double fixed, per_block;
};

/// Broadcast or reduce.
PipelineSteps one_way_steps(int ranks) { return {std::max(0.0, ranks - 2.0), 1}; }

/// Both ways at once, for m >= 2. Two ranks have one link, which swaps a block up and a block down
/// in one step; with more ranks, a rank serves its two links in turn.
PipelineSteps allreduce_steps(int ranks) {
  return ranks == 2 ? PipelineSteps{1, 1} : PipelineSteps{2.0 * ranks - 5, 2};
}

/// The block length with the least time for n elements: sqrt(per_block n alpha / (fixed beta)),
/// rounded so that all blocks have one length. 0 for n = 0.
double best_block(const LinkCost& link, PipelineSteps steps, double n) {
  const double each = steps.fixed * link.beta;
  const double best = each > 0 ? std::sqrt(steps.per_block * n * link.alpha / each) : n;
  const double count = std::round(n / std::clamp(best, 1.0, std::max(1.0, n)));
  return std::ceil(n / std::max(1.0, count));
}

/// Once along the chain with the best block; `each`: seconds per element.
double one_way_seconds(const LinkCost& link, double each, int ranks, double n) {
  if (ranks == 1 || n == 0) return 0;
  const double block = best_block(link, one_way_steps(ranks), n);
  // a shorter last block shortens the last hop only
  return (ranks - 2) * (link.alpha + std::min(n, block) * each) +
         std::ceil(n / block) * link.alpha + n * each;
}
double broadcast_seconds(const LinkCost& link, int ranks, double n) {
  return one_way_seconds(link, link.beta, ranks, n);
}
double reduce_seconds(const LinkCost& link, int ranks, double n) {
  return one_way_seconds(link, link.beta + link.gamma, ranks, n);
}

double allreduce_seconds(const LinkCost& link, int ranks, double n) {
  if (ranks == 1 || n == 0) return 0;
  const double block = best_block(link, allreduce_steps(ranks), n), length = std::min(n, block);
  const double adding = ((ranks - 2) * length + n) * link.gamma;
  // a single block goes up, then comes down
  if (block >= n) return 2 * (ranks - 1) * (link.alpha + n * link.beta) + adding;
  const auto [fixed, per_block] = allreduce_steps(ranks);
  return fixed * (link.alpha + length * link.beta) +
         per_block * (std::ceil(n / block) * link.alpha + n * link.beta) + adding;
}

/// The block length: as given, or the best for the link, which is measured once.
class BlockSize {
 public:
  explicit BlockSize(const Settings& settings)
      : block_(given(settings, "linear_pipeline.block")),
        alpha_(given(settings, "linear_pipeline.alpha")),
        beta_(given(settings, "linear_pipeline.beta")) {
    check(!block_ || *block_ >= 1,
          "[linear_pipeline] linear_pipeline.block is {}; expected auto or at least 1 element",
          settings.text("linear_pipeline.block"));
  }

  /// Elements in one block of n; the same on all ranks.
  size_t elements(Context& ctx, Communicator& comm, PipelineSteps steps, size_t n) {
    if (block_) return static_cast<size_t>(*block_);
    if (!alpha_ || !beta_) {
      const LinkCost measured = measure_link(ctx, comm);
      if (!alpha_) alpha_ = measured.alpha;
      if (!beta_) beta_ = measured.beta;
    }
    const double size = static_cast<double>(comm.float_bytes()) / sizeof(float);
    const LinkCost link{.alpha = *alpha_, .beta = *beta_ * size};
    return static_cast<size_t>(best_block(link, steps, static_cast<double>(n)));
  }

 private:
  std::optional<double> block_, alpha_, beta_;
};

/// The neighbours of this rank in the chain that starts at the root; -1 at its ends.
struct Neighbours {
  Neighbours(const Communicator& comm, int root) {
    const RelativeRank order(comm, root);
    const int self = order.relative(comm.rank());
    if (self > 0) before = order.rank(self - 1);
    if (self + 1 < comm.size()) after = order.rank(self + 1);
  }
  int before = -1, after = -1;
};

/// Sends block `out` to rank `to` while block `in` arrives from rank `from`. Rank -1 or an empty
/// block: no message.
template <class T>
void exchange_blocks(Context& ctx, Communicator& comm, int to, std::span<const T> out, int from,
                     std::span<T> in) {
  if (out.empty()) to = -1;
  if (in.empty()) from = -1;
  if (to < 0) out = {};
  if (from < 0) in = {};
  if (to >= 0 || from >= 0) exchange_exactly(kName, ctx, comm, to, out, from, in);
}

void broadcast_blocks(Context& ctx, Communicator& comm, int root, Bytes data, size_t length) {
  const OperationScope scope(comm, kName);
  const Neighbours chain(comm, root);
  Bytes sent{};
  for (size_t j = 0; j <= blocks_in(data.size(), length); ++j) {
    const Bytes received = block_of(data, length, j);
    exchange_blocks<std::byte>(ctx, comm, chain.after, sent, chain.before, received);
    sent = received;
  }
}

void reduce_blocks(Context& ctx, Communicator& comm, int root, std::span<float> data, size_t length,
                   std::span<float> scratch) {
  const OperationScope scope(comm, kName);
  const Neighbours chain(comm, root);
  std::span<float> finished{};
  for (size_t j = 0; j <= blocks_in(data.size(), length); ++j) {
    const std::span<float> sum = block_of(data, length, j);
    const std::span<float> incoming = scratch.first(chain.after < 0 ? 0 : sum.size());
    exchange_blocks<float>(ctx, comm, chain.before, finished, chain.after, incoming);
    ops::add(ctx, incoming, sum.first(incoming.size()));
    finished = sum;
  }
}

/// In swap s of the link above rank i, block s goes up and block s-i comes down.
void allreduce_blocks(Context& ctx, Communicator& comm, std::span<float> data, size_t length,
                      std::span<float> scratch) {
  const OperationScope scope(comm, kName);
  const Neighbours chain(comm, 0);
  const auto ranks = static_cast<size_t>(comm.size()), self = static_cast<size_t>(comm.rank());
  const auto up = [&](size_t s) { return block_of(data, length, s); };
  const auto down = [&](size_t s, size_t node) {
    return s >= node ? block_of(data, length, s - node) : std::span<float>{};
  };
  for (size_t s = 0; s + 1 < blocks_in(data.size(), length) + ranks; ++s) {
    if (chain.after >= 0) {
      const std::span<float> sum = up(s), incoming = scratch.first(sum.size());
      exchange_blocks<float>(ctx, comm, chain.after, down(s, self + 1), chain.after, incoming);
      ops::add(ctx, incoming, sum);
    }
    exchange_blocks<float>(ctx, comm, chain.before, up(s), chain.before, down(s, self));
  }
}

Broadcast make_broadcast(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, int root, Bytes data) {
    if (comm.size() == 1 || data.empty()) return;
    const size_t elements = (data.size() + sizeof(float) - 1) / sizeof(float);
    const size_t block = size->elements(ctx, comm, one_way_steps(comm.size()), elements);
    broadcast_blocks(ctx, comm, root, data, std::min(block, elements) * sizeof(float));
  };
}

Reduce make_reduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, int root, std::span<float> data,
                std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, one_way_steps(comm.size()), data.size());
    reduce_blocks(ctx, comm, root, data, block, scratch);
  };
}

Allreduce make_allreduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, allreduce_steps(comm.size()), data.size());
    allreduce_blocks(ctx, comm, data, block, scratch);
  };
}

const std::vector<Setting> kSettings{
    {"block", "auto", "elements per block, or auto: the best for the link"},
    {"alpha", "auto", "seconds per message, or auto: measured at the first call"},
    {"beta", "auto", "seconds per element of 4 bytes, or auto: measured at the first call"}};
constexpr const char* kHelp =
    "blocks along a chain of ranks; the time of a long vector hardly grows with the ranks";

const bool linear_pipeline_registered =
    broadcasts().add({kName, kHelp, {make_broadcast, broadcast_seconds}, kSettings, {"lp"}}) &&
    reduces().add({kName, kHelp, {make_reduce, reduce_seconds}, kSettings, {"lp"}}) &&
    allreduces().add({kName, kHelp, {make_allreduce, allreduce_seconds}, kSettings, {"lp"}});

}  // namespace
}  // namespace tw::linear_pipeline
