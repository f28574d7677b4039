#include "engine/ops/cuda/choose_plan.h"

#include <cudnn.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "engine/core/buffer.h"
#include "engine/core/stopwatch.h"
#include "engine/cuda/cuda.h"
#include "engine/device/event.h"
#include "engine/device/graph.h"
#include "engine/ops/cuda/conv_probe.h"

namespace tw::ops {
namespace {

using cudnn::ConvPlan, cudnn::Convolution;

/// Runs, checks and times the plans of one convolution, on operands of its own.
class Race {
 public:
  Race(Context& ctx, const Convolution& c)
      : ctx_(ctx), probe_(ctx, c), timer_(DeviceTimer::create(ctx)) {}

  /// Runs the plan once, which a first run in a graph cannot do, and checks its result. Throws
  /// Refused.
  void try_out(ConvPlan& plan) {
    workspace_.grow(Device::cuda, plan.workspace_bytes());
    probe_.clear(ctx_);
    run(plan);
    // some engines of cuDNN round f32 operands without saying so
    if (!probe_.accurate(ctx_, ctx_.math().tf32))
      fail<cudnn::Refused>("[cuda] {} is not accurate", plan.text());
  }

  /// A graph of some runs. Throws CaptureError.
  std::unique_ptr<Graph> record(ConvPlan& plan, int runs) {
    return Graph::record(ctx_, [&] {
      for (int i = 0; i < runs; ++i) run(plan);
    });
  }

  /// Seconds per run. Short runs are repeated, unless they take several times `best`.
  double seconds(ConvPlan& plan, double best) {
    constexpr double kEnough = 1e-3, kHopeless = 3;
    constexpr int kMany = 50;
    std::unique_ptr<Graph> graph = record(plan, 1);
    warm_up(*graph);
    const double first = time(*graph);
    const int runs = static_cast<int>(std::min<double>(kEnough / first, kMany));
    if (runs < 2 || first > kHopeless * best) return first;
    return time(*record(plan, runs)) / runs;
  }

 private:
  void run(ConvPlan& plan) {
    plan.run(ctx_.handles<CudaHandles>().cudnn(), probe_.x(), probe_.w(), probe_.y(),
             workspace_.data());
  }

  /// Keeps the GPU busy until its clock rate has risen, once for a context.
  void warm_up(Graph& graph) {
    constexpr double kSeconds = 0.3;
    bool& warm = ctx_.handles<CudaHandles>().warm;
    for (const Stopwatch watch; !warm && watch.total() < kSeconds;) {
      graph.launch();
      ctx_.synchronize();
    }
    warm = true;
  }

  /// Seconds of one launch. The clock starts behind a launch, so that it does not time how long the
  /// host takes to queue the next.
  double time(Graph& graph) {
    constexpr int kLaunches = 2;
    double best = INFINITY;
    for (int i = 0; i < kLaunches; ++i) {
      graph.launch();
      timer_->start();
      graph.launch();
      best = std::min(best, timer_->stop());
    }
    return best;
  }

  Context& ctx_;
  ConvProbe probe_;
  Buffer workspace_;
  std::unique_ptr<DeviceTimer> timer_;
};

/// The fastest plans so far, best first.
class Ranking {
 public:
  struct Entry {
    double seconds;
    ConvPlan plan;
  };
  void add(double seconds, ConvPlan plan) {
    const auto at = std::ranges::upper_bound(entries, seconds, {}, &Entry::seconds);
    entries.insert(at, {seconds, std::move(plan)});
    if (entries.size() > kKept) entries.pop_back();
  }
  double best() const { return entries.empty() ? INFINITY : entries.front().seconds; }

  std::vector<Entry> entries;

 private:
  static constexpr size_t kKept = 3;
};

class Choice {
 public:
  Choice(Context& ctx, const Convolution& c) : ctx_(ctx), c_(c) {}

  /// The plan with this text, if there still is one.
  std::optional<ConvPlan> known(const std::string& text) {
    std::optional<ConvPlan> found;
    for_each([&](ConvPlan plan) {
      if (plan.text() == text) found = std::move(plan);
      return !found;
    });
    return found;
  }

  std::optional<ConvPlan> first_that_runs() {
    std::optional<ConvPlan> found;
    for_each([&](ConvPlan plan) {
      if (attempt(plan, [&] {
            race().try_out(plan);
            race().record(plan, 1);
          }))
        found = std::move(plan);
      return !found;
    });
    return found ? std::move(found) : std::move(not_recorded_);
  }

  std::optional<ConvPlan> fastest() {
    Ranking ranking;
    std::set<std::string> tried;
    for_each([&](ConvPlan plan) {
      double seconds = INFINITY;
      if (tried.insert(plan.text()).second && attempt(plan, [&] {
            race().try_out(plan);
            seconds = race().seconds(plan, ranking.best());
          }))
        ranking.add(seconds, std::move(plan));
      return true;
    });
    // the clock rate may have changed since the first was timed
    if (ranking.entries.size() > 1 && ranking.best() < INFINITY)
      for (Ranking::Entry& entry : ranking.entries)
        if (entry.seconds < INFINITY) entry.seconds = race().seconds(entry.plan, INFINITY);
    const auto best = std::ranges::min_element(ranking.entries, {}, &Ranking::Entry::seconds);
    if (best == ranking.entries.end()) return std::move(not_recorded_);
    return std::move(best->plan);
  }

 private:
  template <class Visit>
  void for_each(const Visit& visit) {
    const MathMode math = ctx_.math();
    cudnn::for_each_plan({.handle = ctx_.handles<CudaHandles>().cudnn()}, c_,
                         {.deterministic = math.deterministic, .tf32 = math.tf32}, visit);
  }

  /// False when cuDNN, the check or the capture refuses a plan. Without memory to try it, a plan is
  /// accepted: another may need less, and commit() reports a step that does not fit.
  template <class Body>
  bool attempt(ConvPlan& plan, const Body& body) {
    try {
      body();
    } catch (const cudnn::Refused&) {
      return false;
    } catch (const CaptureError&) {
      if (!not_recorded_) not_recorded_ = std::move(plan);
      return false;
    } catch (const OutOfMemory&) {
      return true;
    }
    return true;
  }

  Race& race() {
    if (!race_) race_.emplace(ctx_, c_);
    return *race_;
  }

  Context& ctx_;
  const Convolution& c_;
  std::optional<Race> race_;
  std::optional<ConvPlan> not_recorded_;  // the first plan that runs, but not in a graph
};

}  // namespace

ConvPlan choose_plan(Context& ctx, const Convolution& c) {
  const MathMode math = ctx.math();
  const std::string key =
      fmt::format("cudnn {} {}{}{}", cudnnGetVersion(), c.text(), math.tf32 ? " tf32" : "",
                  math.deterministic ? " deterministic" : "");
  Choice choice(ctx, c);
  const auto known = ctx.tuning_cache().find(key);
  std::optional<ConvPlan> plan;
  if (known != ctx.tuning_cache().end()) plan = choice.known(known->second);
  if (!plan) plan = math.deterministic ? choice.first_that_runs() : choice.fastest();
  check<Fault>(plan.has_value(), "[conv2d] cuDNN {} has no engine for: {}", cudnnGetVersion(),
               c.text());
  ctx.tuning_cache().insert_or_assign(key, plan->text());
  return std::move(*plan);
}

}  // namespace tw::ops
