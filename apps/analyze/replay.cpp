#include "apps/analyze/replay.h"

#include <algorithm>

#include "apps/common/distributions.h"
#include "apps/common/measurements.h"
#include "comm/transports.h"
#include "sparsify/exchange.h"
#include "sparsify/gradient_mean.h"

namespace tw {

namespace {

/// A step of one rank.
struct RankStep {
  StepReport report;
  std::vector<float> residual;  ///< empty: it keeps none of its own vector
  std::vector<float> mean;
};

std::vector<RankStep> step_of(const std::vector<Recording>& ranks, const SgdConfig& config,
                              const Settings& settings, double density, int threads) {
  std::vector<RankStep> steps(ranks.size());
  const Sparsifier parts = resolve_sparsifier(config, settings);
  const ExchangeEntry& exchange = exchanges().find(parts.exchange).value;
  // a sum may measure the link in its first step, and keeps nothing else
  const int runs = keeps_residual(parts) ? 1 : 2;
  run_on_threads(static_cast<int>(ranks.size()), [&](Communicator& comm) {
    const Recording& mine = ranks[static_cast<size_t>(comm.rank())];
    RankStep& step = steps[static_cast<size_t>(comm.rank())];
    Context ctx(Device::cpu, threads);
    ctx.bind_thread();
    ParameterArena tensors = mine.arena();
    tensors.allocate(ctx, {});
    GradientMean mean(ctx, comm, std::move(tensors), config, settings);
    for (int run = 0; run < runs; ++run) {
      std::ranges::copy(mine.u, mean.arena().gradients().begin());
      barrier(comm);
      step.report = mean.run(
          {.step = static_cast<uint64_t>(std::max<int64_t>(mine.step, 1) - 1), .density = density});
    }
    const std::span<float> e = mean.sgd().residual(), all = mean.arena().values();
    const auto made = exchange(settings, {.machines = gather(comm, comm.machine())});
    // the residual of a rank that leads others is of the sum of theirs
    if (made->selects_for(comm.rank(), comm.size()) == 1) step.residual.assign(e.begin(), e.end());
    step.mean.assign(all.begin(), all.end());
  });
  return steps;
}

double square(double x) { return x * x; }

double error_of(const std::vector<Recording>& ranks, std::span<const float> mean) {
  double difference = 0, whole = 0;
  for (size_t i = 0; i < mean.size(); ++i) {
    double u = 0;
    for (const Recording& rank : ranks) u += static_cast<double>(rank.u[i]);
    u /= static_cast<double>(ranks.size());
    difference += square(u - static_cast<double>(mean[i]));
    whole += square(u);
  }
  return whole > 0 ? std::sqrt(difference / whole) : NAN;
}

/// Fills in what follows from the residuals.
void judge_residuals(const std::vector<Recording>& ranks, const std::vector<RankStep>& steps,
                     Compression& found) {
  if (std::ranges::any_of(steps, [](const RankStep& step) { return step.residual.empty(); }))
    return;
  double left = 0, sent = 0, by_any = 0;
  for (size_t r = 0; r < ranks.size(); ++r) {
    double e = 0, u = 0;
    for (size_t i = 0; i < ranks[r].u.size(); ++i) {
      e += square(static_cast<double>(steps[r].residual[i]));
      u += square(static_cast<double>(ranks[r].u[i]));
    }
    left += (u > 0 ? e / u : NAN) / static_cast<double>(ranks.size());
  }
  for (size_t i = 0; i < ranks[0].u.size(); ++i) {
    double here = 0;  // what is no longer owed in full was sent
    for (size_t r = 0; r < ranks.size(); ++r) here += steps[r].residual[i] != ranks[r].u[i];
    sent += here;
    by_any += here > 0;
  }
  found.contraction = left;
  found.overlap = sent > 0 ? by_any / sent : NAN;
}

double slowest_of(const std::vector<RankStep>& steps, double StepReport::*seconds) {
  double most = 0;
  for (const RankStep& step : steps) most = std::max(most, step.report.*seconds);
  return most;
}

}  // namespace

Compression replay(const std::vector<Recording>& ranks, const std::string& sparsifier,
                   const ReplayOptions& options, const Settings& settings) {
  const SgdConfig config{
      .sparsifier = sparsifier, .momentum = 0, .weight_decay = 0, .seed = options.seed};
  const bool selects = !resolve_sparsifier(config, settings).selector.empty();
  Compression found{.density = selects ? options.density : 1};
  std::vector<double> selection, exchange;
  std::vector<RankStep> steps;
  for (int64_t i = 0; i < options.iterations; ++i) {
    steps = step_of(ranks, config, settings, found.density, options.threads);
    selection.push_back(slowest_of(steps, &StepReport::sec_select));
    exchange.push_back(slowest_of(steps, &StepReport::sec_exchange));
  }
  size_t sent = 0, asked = 0;
  for (const RankStep& step : steps) {
    found.bytes += step.report.bytes_sent;
    sent += step.report.nnz;
    asked += step.report.k;
  }
  found.k = asked / ranks.size();
  if (asked > 0) found.sent_over_k = static_cast<double>(sent) / static_cast<double>(asked);
  found.error = error_of(ranks, steps[0].mean);
  judge_residuals(ranks, steps, found);
  if (selects && !std::isnan(found.contraction)) {
    const double share = static_cast<double>(found.k) / static_cast<double>(ranks[0].u.size());
    found.of_random = left_of_random(share);
    found.of_bell = bell_bound(share);
  }
  found.select_seconds = median(selection);
  found.exchange_seconds = median(exchange);
  return found;
}

}  // namespace tw
