// Linear pipelining (Wang, Wu, Bosilca, Vuduc & Xu 2017, arXiv 1611.04255): the ranks form a chain
// that starts at the root, the vector is cut into m blocks of b elements, and each rank works on
// one block while it receives the next. With ranks counted from the root:
//   broadcast  rank v receives block j from v-1 while it sends block j-1 to v+1
//   reduce     rank v receives block j from v+1 while it sends block j-1 to v-1, then adds
//   allreduce  a reduce to rank 0, which returns each finished block at once. Each link swaps a
//              block on its way up with an earlier one on its way down, so both directions are
//              busy; a rank serves the link below it, then the link above it.
// Each element is summed along the chain, the last rank first: the same bits for every block size.
//
// Over all ranks: broadcast and reduce (P-1) m messages, (P-1) 4n bytes; allreduce twice that.
// Consecutive message times: broadcast and reduce P-2+m; allreduce 2(P-2+m)-1, and m+1 for P = 2.
// With the best block and long vectors, broadcast and reduce take n beta for any P.

#include <charconv>
#include <memory>
#include <optional>

#include "comm/blocks.h"
#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "comm/collectives/measure_link.h"
#include "comm/cost_model.h"
#include "engine/ops/vector.h"

namespace tw::linear_pipeline {
namespace {

constexpr const char* kName = "linear_pipeline";

/// The setting's value as a positive number; nullopt for `auto`.
std::optional<double> given(const Settings& settings, const char* key) {
  const std::string& text = settings.text(key);
  if (text == "auto") return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size() && value > 0 && value < 1e18,
        "[linear_pipeline] {} is {}; expected auto or a number above 0", key, text);
  return value;
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
    const LinkCost wire{.alpha = *alpha_, .beta = *beta_};
    return static_cast<size_t>(lp_best_block(wire, steps, static_cast<double>(n)));
  }

 private:
  std::optional<double> block_, alpha_, beta_;
};

void broadcast_blocks(Context& ctx, Communicator& comm, int root, Bytes data, size_t length) {
  const OperationScope doing(comm, kName);
  const RelativeRank order(comm, root);
  const int place = order.place(comm.rank());
  const bool first = place == 0, last = place == comm.size() - 1;
  const size_t count = blocks_in(data.size(), length);
  for (size_t j = 0; j <= count; ++j) {
    const bool receives = !first && j < count, sends = !last && j > 0;
    if (!receives && !sends) continue;
    exchange_exactly(kName, ctx, comm, sends ? order.rank(place + 1) : -1,
                     sends ? ConstBytes(block_of(data, length, j - 1)) : ConstBytes{},
                     receives ? order.rank(place - 1) : -1,
                     receives ? block_of(data, length, j) : Bytes{});
  }
}

void reduce_blocks(Context& ctx, Communicator& comm, int root, std::span<float> data, size_t length,
                   std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  const RelativeRank order(comm, root);
  const int place = order.place(comm.rank());
  const bool first = place == 0, last = place == comm.size() - 1;
  const size_t count = blocks_in(data.size(), length);
  for (size_t j = 0; j <= count; ++j) {
    const bool receives = !last && j < count, sends = !first && j > 0;
    if (!receives && !sends) continue;
    const std::span<float> sum = receives ? block_of(data, length, j) : std::span<float>{};
    const std::span<float> incoming = scratch.first(sum.size());
    exchange_exactly(
        kName, ctx, comm, sends ? order.rank(place - 1) : -1,
        sends ? std::span<const float>(block_of(data, length, j - 1)) : std::span<const float>{},
        receives ? order.rank(place + 1) : -1, incoming);
    ops::add(ctx, incoming, sum);
  }
}

/// In swap s of the link above rank i, block s goes up and block s-i comes down.
void allreduce_blocks(Context& ctx, Communicator& comm, std::span<float> data, size_t length,
                      std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  const auto ranks = static_cast<size_t>(comm.size()), self = static_cast<size_t>(comm.rank());
  const size_t count = blocks_in(data.size(), length);
  const auto up = [&](size_t s) { return block_of(data, length, s); };
  const auto down = [&](size_t s, size_t node) {
    return s >= node ? block_of(data, length, s - node) : std::span<float>{};
  };
  const auto swap = [&](size_t peer, std::span<const float> out, std::span<float> in) {
    const int other = static_cast<int>(peer);
    if (!out.empty() || !in.empty())
      exchange_exactly(kName, ctx, comm, out.empty() ? -1 : other, out, in.empty() ? -1 : other,
                       in);
  };
  for (size_t s = 0; s + 1 < count + ranks; ++s) {
    if (self + 1 < ranks) {
      const std::span<float> sum = up(s), incoming = scratch.first(sum.size());
      swap(self + 1, down(s, self + 1), incoming);
      ops::add(ctx, incoming, sum);
    }
    if (self > 0) swap(self - 1, up(s), down(s, self));
  }
}

Broadcast make_broadcast(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, int root, Bytes data) {
    if (comm.size() == 1 || data.empty()) return;
    const size_t elements = (data.size() + sizeof(float) - 1) / sizeof(float);
    const size_t block = size->elements(ctx, comm, lp_one_way_steps(comm.size()), elements);
    broadcast_blocks(ctx, comm, root, data, std::min(block, elements) * sizeof(float));
  };
}

Reduce make_reduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, int root, std::span<float> data,
                std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, lp_one_way_steps(comm.size()), data.size());
    reduce_blocks(ctx, comm, root, data, block, scratch);
  };
}

Allreduce make_allreduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, lp_allreduce_steps(comm.size()), data.size());
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
    broadcasts().add({kName, kHelp, make_broadcast, kSettings, {"lp"}}) &&
    reduces().add({kName, kHelp, make_reduce, kSettings, {"lp"}}) &&
    allreduces().add({kName, kHelp, make_allreduce, kSettings, {"lp"}});

}  // namespace
}  // namespace tw::linear_pipeline
