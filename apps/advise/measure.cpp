#include "apps/advise/measure.h"

#include <algorithm>

#include "apps/common/median.h"
#include "apps/common/rank_utils.h"
#include "comm/subcommunicator.h"
#include "comm/transports.h"
#include "engine/core/buffer.h"
#include "engine/core/rng.h"
#include "engine/core/stopwatch.h"
#include "engine/ops/vector.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

double slowest(Context& ctx, Communicator& comm, double seconds) {
  return std::ranges::max(gather(ctx, comm, seconds));
}

void fill_inputs(const Model& model, uint64_t rank) {
  const Philox philox(rank, Purpose::test);
  const std::span<uint8_t> pixels = model.images().as<uint8_t>();
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(philox(i)[0]);
  const std::span<int32_t> labels = model.labels().as<int32_t>();
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int32_t>(i % static_cast<size_t>(model.spec().classes));
}

/// Median seconds of `body` on ctx's device, after once that does not count; all ranks at the same
/// time.
template <class Body>
double timed(Context& ctx, Communicator& comm, int64_t rounds, const Body& body) {
  std::vector<double> seconds;
  for (int64_t round = -1; round < rounds; ++round) {
    barrier(ctx, comm);
    Stopwatch watch;
    body(round + 1);
    ctx.synchronize();
    if (round >= 0) seconds.push_back(watch.total());
  }
  return slowest(ctx, comm, median(seconds));
}

/// The least of each node's ranks, and of these the most: the last node may be a small one.
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
  fill_inputs(model, static_cast<uint64_t>(comm.rank()));
  model.refresh(ctx);

  LocalCosts costs;
  costs.compute = timed(ctx, comm, settings.steps, [&](int64_t step) {
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
  for (const auto& [name, algorithm] : sparsifiers().entries()) {
    const bool in_nodes = algorithm.value.exchange == "hierarchical";
    SyncSgd sgd(ctx, in_nodes ? node : *alone, model.arena(),
                {.sparsifier = name, .barrier_comm = &comm}, settings.settings);
    std::vector<double> total, exchange;
    for (int64_t step = -1; step < settings.steps; ++step) {
      std::ranges::copy(gradient, g.begin());  // the step leaves its sum there
      barrier(ctx, comm);
      Stopwatch watch;
      const StepReport report = sgd.step(
          {.step = static_cast<uint64_t>(step + 1), .lr = 1e-6, .density = settings.density});
      model.refresh(ctx);
      if (step < 0) continue;
      total.push_back(watch.total());
      exchange.push_back(report.sec_exchange - report.sec_wait);
    }
    const double sum = least_in_the_slowest(gather(ctx, comm, median(exchange)),
                                            in_nodes ? plan : NodePlan{comm.size(), comm.size()});
    costs.step[name] = {.update = slowest(ctx, comm, median(total)) - sum, .exchange = sum};
  }
  return costs;
}

LinkCost measure_additions(Context& ctx, Communicator& comm, size_t d, double density) {
  constexpr int rounds = 7, parts = 8;
  const size_t n = size_t{1} << 20;
  const Buffer x(ctx.device(), n * sizeof(float)), y(ctx.device(), n * sizeof(float));
  ops::fill(ctx, x.as<float>(), 1);
  const double adding =
      timed(ctx, comm, rounds, [&](int64_t) { ops::add(ctx, x.as<float>(), y.as<float>()); });

  // entries spread over the vector, as selected ones are; other ranks' lie elsewhere
  const size_t k = std::min(d, entries_to_keep(density, d));
  std::vector<float> values(k, 1);
  std::vector<std::vector<uint32_t>> indices(parts);
  std::vector<SparseView> views;
  for (size_t part = 0; part < parts; ++part) {
    for (size_t i = 0; i < k; ++i)
      indices[part].push_back(static_cast<uint32_t>((i * (d / k)) + part % (d / k)));
    views.push_back({indices[part], values});
  }
  const Buffer sum(ctx.device(), d * sizeof(float));
  const auto summing = [&](size_t some) {
    return timed(ctx, comm, rounds,
                 [&](int64_t) { sparse_sum(ctx, std::span(views).first(some), sum.as<float>()); });
  };
  const double all = summing(parts), one = summing(1);
  return {.gamma = adding / static_cast<double>(n),
          .merge = std::max(0.0, all - one) / static_cast<double>((parts - 1) * k)};
}

}  // namespace tw
