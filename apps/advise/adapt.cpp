#include "apps/advise/adapt.h"

#include "apps/advise/prediction.h"

namespace tw {

namespace {

std::vector<OverlappedExchange> exchanges_of(const SgdPlan& plan, const ParameterArena& arena,
                                             const std::string& name, const Costs& costs,
                                             int ranks) {
  // selection and the local part of the exchange, which tensors share by their lengths
  const StepCosts& step = costs.step.at(name);
  const double alone = std::max(0.0, step.update - costs.update(kDense) + step.exchange);
  std::vector<OverlappedExchange> all;
  double ready = 0;
  for (const Bucket& bucket : plan.buckets) {
    for (size_t i = 0; const Parameter& p : arena.parameters()) {
      const double seconds = costs.slowness(ranks) * costs.compute.ready[i++];
      if (p.offset >= bucket.offset && p.offset < bucket.offset + bucket.length)
        ready = std::max(ready, seconds);
    }
    const double part = bucket.packed ? 0 : static_cast<double>(bucket.elements());
    const double own = alone * part / static_cast<double>(arena.size());
    all.push_back({ready, [=, &plan, &bucket, link = costs.link_of(ranks)](double density) {
                     const size_t k = bucket.entries(density, plan.volume(density));
                     return own + bucket.seconds(link, ranks, k);
                   }});
  }
  return all;
}

/// The argument of --density-of.
std::string density_of(const SgdPlan& plan, const ParameterArena& arena,
                       const std::vector<double>& densities, double least) {
  std::string text;
  for (size_t i = 0; const Bucket& bucket : plan.buckets)
    for (const double density = densities[i++]; const Segment& of : bucket.segments)
      if (!bucket.packed && density != least)
        text += fmt::format(
            "{}{}={:g}", text.empty() ? "" : ",",
            std::ranges::find(arena.parameters(), of.offset, &Parameter::offset)->name, density);
  return text;
}

}  // namespace

SgdPlan plan_with(const std::string& densities, const ParameterArena& arena,
                  const AdviseConfig& config) {
  const SgdConfig sgd{.sparsifier = config.adapt_density,
                      .density_of = densities,
                      .scope = Scope::layer,
                      .bucket_bytes = static_cast<size_t>(config.bucket_mib * 1024 * 1024),
                      .overlap = true,
                      .local_steps = config.local_steps > 1 ? config.local_steps : 0};
  SgdPlan plan(arena, sgd, config.settings);
  check(!exchanges().find(plan.sparsifier.exchange).value.forms_nodes,
        "[options] adapt-density {} sums inside nodes, which is not priced", config.adapt_density);
  return plan;
}

void print_adapted(Console& console, const ParameterArena& arena, const AdviseConfig& config,
                   Rounds rounds) {
  const auto middle = rounds.begin() + static_cast<ptrdiff_t>(rounds.size() / 2);
  std::ranges::nth_element(rounds, middle, {}, [](const Costs& c) { return c.compute.seconds(); });
  const Costs& costs = *middle;
  const std::string& name = sparsifiers().find(config.adapt_density).name;
  const SgdPlan plan = plan_with("", arena, config);
  std::string flags;
  for (const auto& [key, value] :
       changed_settings({.sparsifier = name, .scope = Scope::layer}, config.settings, arena))
    flags += fmt::format(" --set {}={}", key, value);
  for (const int64_t p : config.ranks) {
    const int ranks = static_cast<int>(p);
    const auto exchanges = exchanges_of(plan, arena, name, costs, ranks);
    const double backward = costs.slowness(ranks) * costs.compute.backward;
    std::vector<double> densities(exchanges.size(), config.density);
    const auto seconds = [&](bool raise) {
      const double end = end_of(exchanges, backward, densities, raise);
      return costs.compute_seconds(ranks) + costs.update(kDense) + std::max(0.0, end - backward);
    };
    const double before = seconds(false), after = seconds(true);
    const std::string text = density_of(plan, arena, densities, config.density);
    console.line(
        "\n{}, {} during backward: an iteration takes {:.4g} s and sends {} entries; with "
        "densities that fit into backward {:.4g} s and {} entries:\nuse --sparsifier {} --scope "
        "layer --overlap --bucket-mib {:g} --density {:g} --density-of '{}'{}",
        counted(p, "rank"), name, before, plan.entries(config.density), after,
        plan_with(text, arena, config).entries(config.density), name, config.bucket_mib,
        config.density, text, flags);
  }
}

}  // namespace tw
