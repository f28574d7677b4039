#include "apps/advise/measure.h"

#include <algorithm>

#include "apps/common/median.h"
#include "apps/common/random_batch.h"
#include "apps/common/time_ranks.h"
#include "comm/subcommunicator.h"
#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

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

LocalCosts measure_local(Context& ctx, Communicator& comm, Model& model,
                         const MachineSettings& settings) {
  model.plan(ctx, {.batch = settings.batch_size, .activations = settings.precision});
  model.allocate(ctx, 1);
  fill_random_batch(model, static_cast<uint64_t>(comm.rank()));
  model.refresh(ctx);

  LocalCosts costs;
  costs.compute = time_ranks(ctx, comm, settings.steps, [&](int64_t step) {
    const PassArgs pass{.ctx = ctx, .step = static_cast<uint64_t>(step)};
    model.forward(pass);
    model.backward(pass);
  });
  const std::span<float> g = model.arena().gradients();
  const std::vector<float> gradient(g.begin(), g.end());
  const auto alone = make_self_communicator();
  const NodePlan plan{comm.size(),
                      static_cast<int>(settings.settings.integer("hierarchical.node"))};
  Subcommunicator node(comm, plan.node_of(comm.rank()));
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const bool in_nodes = entry.value.exchange == "hierarchical";
    SyncSgd sgd(ctx, in_nodes ? node : *alone, model.arena(),
                {.sparsifier = name, .barrier_comm = &comm}, settings.settings);
    std::vector<double> total, exchange;
    for (int64_t step = -1; step < settings.steps; ++step) {
      std::ranges::copy(gradient, g.begin());  // the step leaves its sum there
      barrier(comm);
      Stopwatch watch;
      const StepReport report = sgd.step(
          {.step = static_cast<uint64_t>(step + 1), .lr = 1e-6, .density = settings.density});
      model.refresh(ctx);
      if (step < 0) continue;
      total.push_back(watch.total());
      exchange.push_back(report.sec_exchange - report.sec_wait);
    }
    const double sum = least_in_the_slowest(gather(comm, median(exchange)),
                                            in_nodes ? plan : NodePlan{comm.size(), comm.size()});
    costs.step[name] = {.update = slowest_rank(comm, median(total)) - sum, .exchange = sum};
  }
  return costs;
}

}  // namespace tw
