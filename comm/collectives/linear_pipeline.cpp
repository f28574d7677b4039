// Linear pipelining (Wang, Wu, Bosilca, Vuduc & Xu 2017, arXiv 1611.04255): the ranks form a chain
// that starts at the root, the vector is cut into m blocks of b elements, and every node works on
// one block while the next one is on its way to it.
//   broadcast  node v receives block j from v-1 while sending block j-1 to v+1
//   reduce     node v receives block j from v+1 while sending block j-1 to v-1, then adds
//   allreduce  a reduce to rank 0, where each finished block turns back at once. Each link swaps: a
//              block on its way up against an earlier one on its way down, so both directions of
//              the wire are busy; a node serves the link below it, then the one above it.
// Every element is added up along the chain, the last rank first: the same bits whatever the block
// size.
//
// Over all ranks: broadcast and reduce (P-1) m messages, (P-1) 4n bytes; allreduce twice that.
// Messages' times in a row: broadcast and reduce P-2+m; allreduce 2(P-2+m)-1, and m+1 for P = 2.
// With the best block and n long, broadcast and reduce take n beta, whatever P.

#include <charconv>
#include <memory>
#include <optional>

#include "comm/collectives/collectives.h"
#include "comm/collectives/common.h"
#include "comm/collectives/measure_link.h"
#include "comm/cost_model.h"
#include "engine/ops/vector.h"

namespace tw {
namespace {

constexpr const char* kName = "lp";

/// The setting's value as a positive number; nothing for `auto`.
std::optional<double> given(const Settings& settings, const char* key) {
  const std::string& text = settings.text(key);
  if (text == "auto") return std::nullopt;
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  check(error == std::errc{} && end == text.data() + text.size() && value > 0 && value < 1e18,
        "[lp] {} is {}; expected auto or a number above 0", key, text);
  return value;
}

/// How long blocks are: as given, or the best for the wire, which is measured once.
class BlockSize {
 public:
  explicit BlockSize(const Settings& settings)
      : block_(given(settings, "lp.block")),
        alpha_(given(settings, "lp.alpha")),
        beta_(given(settings, "lp.beta")) {
    check(!block_ || *block_ >= 1, "[lp] lp.block is {}; expected auto or at least 1 element",
          settings.text("lp.block"));
  }

  /// Elements in one block of n; the same on all ranks.
  size_t elements(Context& ctx, Communicator& comm, PipelineSteps steps, size_t n) {
    if (block_) return static_cast<size_t>(*block_);
    if (!alpha_ || !beta_) {
      const LinkCost measured = measure_wire(ctx, comm);
      if (!alpha_) alpha_ = measured.alpha;
      if (!beta_) beta_ = measured.beta;
    }
    const LinkCost wire{.alpha = *alpha_, .beta = *beta_};
    return static_cast<size_t>(lp_best_block(wire, steps, static_cast<double>(n)));
  }

 private:
  std::optional<double> block_, alpha_, beta_;
};

/// Block j of `length` elements of data.
template <class T>
struct Blocks {
  std::span<T> data;
  size_t length;
  size_t count() const { return (data.size() + length - 1) / length; }
  std::span<T> operator[](size_t j) const {
    return data.subspan(j * length, std::min(length, data.size() - j * length));
  }
};

void broadcast_blocks(Context& ctx, Communicator& comm, int root, const Blocks<std::byte>& blocks) {
  const OperationScope doing(comm, kName);
  const RelativeRank order(comm, root);
  const int place = order.place(comm.rank());
  const bool first = place == 0, last = place == comm.size() - 1;
  for (size_t j = 0; j <= blocks.count(); ++j) {
    const bool receives = !first && j < blocks.count(), sends = !last && j > 0;
    if (!receives && !sends) continue;
    exchange_exactly(kName, ctx, comm, sends ? order.rank(place + 1) : -1,
                     sends ? ConstBytes(blocks[j - 1]) : ConstBytes{},
                     receives ? order.rank(place - 1) : -1, receives ? blocks[j] : Bytes{});
  }
}

void reduce_blocks(Context& ctx, Communicator& comm, int root, const Blocks<float>& blocks,
                   std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  const RelativeRank order(comm, root);
  const int place = order.place(comm.rank());
  const bool first = place == 0, last = place == comm.size() - 1;
  for (size_t j = 0; j <= blocks.count(); ++j) {
    const bool receives = !last && j < blocks.count(), sends = !first && j > 0;
    if (!receives && !sends) continue;
    const std::span<float> sum = receives ? blocks[j] : std::span<float>{};
    const std::span<float> incoming = scratch.first(sum.size());
    exchange_exactly(kName, ctx, comm, sends ? order.rank(place - 1) : -1,
                     sends ? std::span<const float>(blocks[j - 1]) : std::span<const float>{},
                     receives ? order.rank(place + 1) : -1, incoming);
    ops::add(ctx, incoming, sum);
  }
}

/// Swap s of the link above node i: block s goes up, block s-i comes down.
void allreduce_blocks(Context& ctx, Communicator& comm, const Blocks<float>& blocks,
                      std::span<float> scratch) {
  const OperationScope doing(comm, kName);
  const auto ranks = static_cast<size_t>(comm.size()), self = static_cast<size_t>(comm.rank());
  const size_t count = blocks.count();
  const auto up = [&](size_t s) { return s < count ? blocks[s] : std::span<float>{}; };
  const auto down = [&](size_t s, size_t node) {
    return s >= node && s - node < count ? blocks[s - node] : std::span<float>{};
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
    broadcast_blocks(ctx, comm, root, {data, std::min(block, elements) * sizeof(float)});
  };
}

Reduce make_reduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, int root, std::span<float> data,
                std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, lp_one_way_steps(comm.size()), data.size());
    reduce_blocks(ctx, comm, root, {data, block}, scratch);
  };
}

Allreduce make_allreduce(const Settings& settings) {
  const auto size = std::make_shared<BlockSize>(settings);
  return [size](Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
    check_scratch(kName, data, scratch);
    if (comm.size() == 1 || data.empty()) return;
    const size_t block = size->elements(ctx, comm, lp_allreduce_steps(comm.size()), data.size());
    allreduce_blocks(ctx, comm, {data, block}, scratch);
  };
}

const std::vector<Setting> kSettings{
    {"block", "auto", "elements in a block, or auto: the best for the wire"},
    {"alpha", "auto", "seconds a message, or auto: measured at the first call"},
    {"beta", "auto", "seconds an element of 4 bytes, or auto: measured at the first call"}};
constexpr const char* kHelp =
    "linear pipelining: blocks along a chain; time of a long vector "
    "hardly grows with the ranks";

const bool registered = broadcasts().add({kName, kHelp, make_broadcast, kSettings}) &&
                        reduces().add({kName, kHelp, make_reduce, kSettings}) &&
                        allreduces().add({kName, kHelp, make_allreduce, kSettings});

}  // namespace
}  // namespace tw
