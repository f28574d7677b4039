// Exchange in two levels. The ranks of a node sum their gradients densely, over fast links. Only
// the leader of each node selects, keeps a residual and takes part in a sparse exchange between the
// nodes (`hierarchical.exchange`). It broadcasts the sum inside its node.
//
// Bytes over all ranks, with N nodes: those of the inner exchange on N ranks, and inside the nodes
// (P - N) (8 (d+1) + 16 + 4 d): an allreduce (half of its bytes with 16-bit `allreduce.values`),
// the control word, a broadcast. Seconds: those of the inner exchange on N ranks, and inside the
// nodes an allreduce and the broadcasts of the control word and of d by a tree.

#include <algorithm>
#include <optional>

#include "comm/collectives/collectives.h"
#include "comm/launcher.h"
#include "comm/subcommunicator.h"
#include "sparsify/exchange.h"
#include "sparsify/exchanges/dense_sum.h"
#include "sparsify/kernels/selection.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

/// The exchange between the leaders.
const ExchangeEntry& inner(const Settings& settings) {
  return exchanges().find(settings.text("hierarchical.exchange")).value;
}

class Hierarchical : public Exchange {
 public:
  Hierarchical(const Settings& settings, const ExchangePlan& plan)
      : inner_(inner(settings)(settings, plan)),
        dense_(dense_exchange().value(settings)),
        per_node_(static_cast<int>(settings.integer(kNodeSetting))) {
    if (per_node_ == 0 && !plan.machines.empty()) machines_.emplace(plan.machines);
  }

  float threshold() const override { return leads() ? inner_->threshold() : 0; }

  void prepare(Context& ctx, Communicator& comm, const ExchangeStep& step,
               Control& control) override {
    if (!node_) split(comm);
    // before the sum, since the sum does not show which rank's gradient it was
    control.record(name_nonfinite(ctx, step.gradient));
    if (control.nonfinite != SIZE_MAX) control.nonfinite_rank = comm.rank();
    dense_->run(ctx, *node_, step, control);
    if (leads()) inner_->prepare(ctx, *leaders_, step, control);
  }
  bool selects(const Communicator&, const ExchangeStep&) const override { return leads(); }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    load_ = {};
    if (leads()) {
      // the inner exchange knows only the ranks of the leaders
      if (control.nonfinite != SIZE_MAX && control.nonfinite_rank < 0)
        control.nonfinite_rank = comm.rank();
      inner_->run(ctx, *leaders_, step, control);
      load_ = inner_->load();
    }
    ControlWord word = pack(control);
    broadcast(ctx, *node_, 0, std::as_writable_bytes(std::span(&word, 1)));
    merge(control, leader_, word);
    if (control.nonfinite_rank >= 0) return;
    broadcast(ctx, *node_, 0, std::as_writable_bytes(step.gradient));
  }

  std::span<std::byte> state() override { return inner_->state(); }
  int selects_for(int rank, int ranks) const override {
    const std::vector<int> node = plan(ranks).node_of(rank);
    return node.front() == rank ? static_cast<int>(node.size()) : 0;
  }

  int contributors(int ranks) const override { return inner_->contributors(nodes(ranks)); }
  uint64_t wire_bytes(int ranks, size_t d, size_t entries) const override {
    return inside(ranks, d) + inner_->wire_bytes(nodes(ranks), d, entries);
  }
  uint64_t claimed_bytes(int ranks, size_t d, const Traffic& load) const override {
    return inside(ranks, d) + inner_->claimed_bytes(nodes(ranks), d, load);
  }
  double seconds(const LinkCost& link, int ranks, size_t d, size_t k) const override {
    return inner_->seconds(link, nodes(ranks), d, k);
  }
  double seconds_inside(const LinkCost& own, int ranks, size_t d) const override {
    const NodePlan all = plan(ranks);
    std::vector<int> sizes(static_cast<size_t>(ranks));  // of nodes, by leader
    int members = 1;
    for (int rank = 0; rank < ranks; ++rank)
      members = std::max(members, ++sizes[static_cast<size_t>(all.leader(rank))]);
    return dense_->seconds(own, members, d, d) +
           tree_rounds(members) * (2 * own.alpha + static_cast<double>(d) * own.beta);
  }
  bool sums_densely() const override { return inner_->sums_densely(); }

 private:
  NodePlan plan(int ranks) const {
    if (machines_) return *machines_;
    if (per_node_ > 0) return {ranks, per_node_};
    // for costs: each machine has as many ranks as this one
    const std::optional<Launcher> launcher = find_launcher();
    const bool knows = launcher && launcher->ranks == ranks && launcher->local_ranks > 0;
    return {ranks, knows ? launcher->local_ranks : ranks};
  }
  int nodes(int ranks) const { return plan(ranks).nodes(); }
  uint64_t inside(int ranks, size_t d) const {
    const uint64_t members = static_cast<uint64_t>(ranks - nodes(ranks));
    return dense_->wire_bytes(static_cast<int>(members) + 1, d, d) +
           members * (sizeof(ControlWord) + sizeof(float) * d);
  }

  void split(Communicator& comm) {
    const NodePlan nodes = plan(comm.size());
    leader_ = nodes.leader(comm.rank());
    node_ = std::make_unique<Subcommunicator>(comm, nodes.node_of(comm.rank()));
    if (node_->rank() == 0) leaders_ = std::make_unique<Subcommunicator>(comm, nodes.leaders());
  }
  bool leads() const { return leaders_ != nullptr; }

  std::unique_ptr<Exchange> inner_, dense_;
  int per_node_;                      // 0: the ranks of a machine
  std::optional<NodePlan> machines_;  // with per_node_ = 0
  int leader_ = 0;                    // of this rank's node
  std::unique_ptr<Subcommunicator> node_, leaders_;
};

const bool hierarchical_exchange = exchanges().add(
    {"hierarchical",
     "dense sums inside nodes, a sparse exchange between their leaders",
     {.make = make_exchange<Hierarchical>,
      .needs_shared_indices =
          [](const Settings& settings) { return inner(settings).needs_shared_indices(settings); },
      .one_threshold =
          [](const Settings& settings) { return inner(settings).one_threshold(settings); },
      .forms_nodes = true,
      .validate = DenseSum::validate},
     {{"exchange",
       "allgather",
       "exchange between the leaders",
       {"allgather", "gtopk", "exact", "oktopk", "shared"}},
      {.key = "node",
       .value = "4",
       .help = "consecutive ranks per node; the last node may have fewer; 0: those of a machine; "
               "default: --ranks-per-node if given, else 0 on several machines and 4 on one",
       .least = 0,
       .most = 65536}}});
const bool hierarchical_sparsifier =
    sparsifiers().add({"hierarchical",
                       "dense inside nodes, exact top-k and error feedback between them",
                       // its time depends on which ranks share a node
                       {.selector = "topk", .exchange = "hierarchical", .advice = Advice::never}});

}  // namespace

const char* const kNodeSetting = "hierarchical.node";

}  // namespace tw
