#include "apps/advise/measure.h"

#include <algorithm>

#include "apps/common/measurements.h"
#include "apps/common/resolve.h"
#include "comm/collectives/measure_link.h"
#include "comm/subcommunicator.h"
#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

constexpr int kSteps = 3;  // of a sparsifier in a round, after one that warms up

/// The maximum over all nodes of the minimum seconds within a node.
double least_in_the_slowest(const std::vector<double>& seconds, const NodePlan& plan) {
  double most = 0;
  for (const int leader : plan.leaders()) {
    double least = seconds[leader];
    for (const int rank : plan.node_of(leader)) least = std::min(least, seconds[rank]);
    most = std::max(most, least);
  }
  return most;
}

}  // namespace

CostMeter::CostMeter(Context& ctx, Communicator& comm, Model& model, const AdviseConfig& config)
    : ctx_(ctx), comm_(comm), model_(model), config_(config) {
  if (!config.link.empty() && comm.size() > 1) {
    const Topology topology = parse_link(config.link, static_cast<int>(config.ranks_per_node));
    if (!topology_of(config)) link_.emplace(ctx, comm, topology);
    // messages inside a node take no time, whatever its ports
    const auto ranks_of_node = static_cast<int>(config.settings.integer(kNodeSetting));
    nodes_.emplace(ctx, comm, Topology{.usual = topology.usual, .ranks_per_node = ranks_of_node});
  }
  model.plan(
      ctx, {.batch = config.batch_size,
            .activations = activations_of(resolve_precision(config.precision, resolve_device()))});
  model.allocate(ctx, 1);
  fill_random_batch(ctx, model, static_cast<uint64_t>(comm.rank()));
  model.refresh(ctx);
}

ComputeProfile CostMeter::time_compute() {
  barrier(comm_);
  ComputeProfile profile = time_passes(ctx_, model_, step_++);
  const double forward = slowest_rank(comm_, profile.forward);
  const double backward = slowest_rank(comm_, profile.backward);
  for (double& seconds : profile.ready) seconds *= backward / profile.backward;
  profile.forward = forward;
  profile.backward = backward;
  return profile;
}

StepCosts CostMeter::time_step(const std::string& sparsifier, bool in_nodes) {
  const NodePlan nodes{comm_.size(), static_cast<int>(config_.settings.integer(kNodeSetting))};
  const auto alone = make_self_communicator();
  Subcommunicator node(nodes_ ? *nodes_ : comm_, nodes.node_of(comm_.rank()));
  SyncSgd sgd(ctx_, in_nodes ? node : *alone, model_.arena(),
              {.sparsifier = sparsifier, .barrier_comm = &comm_}, config_.settings);
  std::vector<double> total, exchange;
  for (int step = 0; step <= kSteps; ++step) {
    std::ranges::copy(gradient_, model_.arena().gradients().begin());  // its sum is left there
    barrier(comm_);
    Stopwatch watch;
    const StepReport report =
        sgd.step({.step = static_cast<uint64_t>(step), .lr = 1e-6, .density = config_.density});
    model_.refresh(ctx_);
    if (step == 0) continue;
    total.push_back(watch.total());
    exchange.push_back(report.sec_exchange - report.sec_wait);
  }
  const NodePlan plan = in_nodes ? nodes : NodePlan{comm_.size(), comm_.size()};
  const double sum = least_in_the_slowest(gather(comm_, median(exchange)), plan);
  return {.update = slowest_rank(comm_, median(total)) - sum, .exchange = sum};
}

Costs CostMeter::round(const std::function<void(const std::string&)>& show) {
  Costs costs;
  show("forward and backward");
  costs.compute = time_compute();
  const std::span<float> g = model_.arena().gradients();
  gradient_.assign(g.begin(), g.end());
  for (const auto& [name, entry] : sparsifiers().entries()) {
    show(name);
    costs.step[name] = time_step(name, exchanges().find(entry.value.exchange).value.forms_nodes);
  }
  show("link and additions");
  if (comm_.size() > 1 && (link_ || !nodes_))
    costs.link = measure_link(ctx_, link_ ? *link_ : comm_);
  const LinkCost additions = measure_additions(ctx_, comm_, model_.arena().size(), config_.density);
  costs.link.gamma = additions.gamma;
  costs.link.merge = additions.merge;
  return costs;
}

}  // namespace tw
