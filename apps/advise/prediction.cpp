#include "apps/advise/prediction.h"

#include <algorithm>
#include <set>

#include "apps/common/sum_cost.h"
#include "comm/collectives/collectives.h"
#include "comm/subcommunicator.h"
#include "sparsify/step_costs.h"

namespace tw {

namespace {

const size_t kBucketBytes = SgdConfig{}.bucket_bytes;

std::vector<Load> loads_of(const ParameterArena& arena, size_t flat, const Sparsifier& sparsifier,
                           double density, const Settings& settings) {
  const Volume volume = volume_of(sparsifier, settings, density);
  const ExchangeEntry& entry = exchanges().find(sparsifier.exchange).value;
  if (flat > 0)
    return {{.d = static_cast<double>(flat),
             .k = static_cast<double>(density < 1 ? entries_to_keep(density, flat, volume) : flat),
             .sums = entry(settings)->dense_sums(flat)}};
  std::vector<Load> loads;
  size_t end = arena.parameters().size();  // buckets start at the end of the vector
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, kBucketBytes)) {
    const Load load{
        .d = static_cast<double>(bucket.length),
        .k = static_cast<double>(bucket.entries(density, volume)),
        .dense = static_cast<double>(bucket.dense_length()),
        .sums = entry(settings, plan_exchange(arena, bucket, 1))->dense_sums(bucket.length),
        .first_parameter = end - bucket.parameters,
        .end_parameter = end};
    end = load.first_parameter;
    loads.push_back(load);
  }
  return loads;
}

/// Adds a dense sparsifier with every allowed collective, type of values, and kind of overlap.
void add_dense(std::vector<Prediction>& all, const Prediction& plain, bool overlap,
               const std::vector<Load>& layers, const std::vector<ValueFormat>& formats,
               const DenseCosts& collectives) {
  for (const auto& [collective, cost] : collectives)
    for (const ValueFormat values : formats)
      for (const bool overlaps : {false, true}) {
        if (overlaps && !overlap) continue;
        Prediction& c = all.emplace_back(plain);
        c.collective = collective;
        c.values = values;
        c.overlap = overlaps;
        if (overlaps) c.loads = layers;
        c.cost = [sum = sum_cost(cost, values)](const LinkCost& link, int ranks, const Load& load) {
          return sum(link, ranks, load.d);
        };
      }
}

}  // namespace

std::string Prediction::collective_text() const {
  std::string text = collective;
  if (values != ValueFormat::f32) text += fmt::format(" {}", name(values));
  if (overlap) text += " overlap";
  return text;
}

std::string Prediction::label() const {
  std::string text = sparsifier;
  if (const std::string how = collective_text(); !how.empty()) text += " " + how;
  if (local_steps > 1) text += fmt::format(" H={}", local_steps);
  return text;
}

std::string Prediction::kind() const {
  std::string text = sparsifier;
  if (values != ValueFormat::f32) text += fmt::format(" {}", name(values));
  if (overlap) text += " overlap";
  if (local_steps > 1) text += fmt::format(" H={}", local_steps);
  return text;
}

std::string Prediction::flags() const {
  std::string flags = "--sparsifier " + sparsifier;
  if (!collective.empty()) flags += " --allreduce " + collective;
  if (values != ValueFormat::f32) flags += fmt::format(" --set allreduce.values={}", name(values));
  if (overlap) flags += " --scope layer --overlap";
  if (local_steps > 1) flags += fmt::format(" --local-steps {}", local_steps);
  return flags;
}

double Prediction::exchange_seconds(const Costs& costs, int ranks) const {
  const auto step = costs.step.find(sparsifier);
  double sum = step == costs.step.end() ? 0 : step->second.exchange;
  if (!overlap) {
    for (const Load& load : loads) sum += cost(costs.link, ranks, load);
    return sum / static_cast<double>(local_steps);
  }
  // one exchange at a time, each after the last gradient of its bucket
  const std::span<const double> ready = costs.compute.ready;
  double end = 0;
  for (const Load& load : loads) {
    const auto bucket =
        ready.subspan(load.first_parameter, load.end_parameter - load.first_parameter);
    end = std::max(end, std::ranges::max(bucket)) + cost(costs.link, ranks, load);
  }
  return sum + std::max(0.0, end - costs.compute.backward);
}

double Prediction::seconds(const Costs& costs, int ranks) const {
  const double alone = local_steps > 1 ? costs.update("dense") : 0;
  return costs.compute.seconds() + alone +
         costs.update(sparsifier) / static_cast<double>(local_steps) +
         exchange_seconds(costs, ranks);
}

std::vector<Prediction> predictions(const ParameterArena& arena, size_t flat, double density,
                                    bool overlap, const Settings& settings, int64_t local_steps) {
  std::vector<Prediction> all;
  overlap = overlap && flat == 0 && local_steps == 1;
  const DenseCosts collectives = allowed_sums(settings);
  const ValueFormat chosen = value_format(settings.text("allreduce.values"));
  std::vector<ValueFormat> formats{chosen};
  if (chosen == ValueFormat::f32) formats.push_back(ValueFormat::bf16);
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const Sparsifier sparsifier = resolve_sparsifier({.sparsifier = name}, settings);
    if (local_steps > 1 && exchanges().find(sparsifier.exchange).value.updates_at_root) continue;
    Prediction c{
        .sparsifier = name,
        .dense = !keeps_residual(sparsifier),
        .selects = !sparsifier.selector.empty(),
        .reads = {name, sparsifier.selector, sparsifier.exchange, "wire", "momentum_correction"},
        .local_steps = local_steps,
        .loads = loads_of(arena, flat, sparsifier, density, settings),
        .volume = volume_of(sparsifier, settings, density)};
    // one without a collective, or one for each that may sum
    const auto add = [&](bool sums, const std::function<LoadCost(const SumCost&)>& cost_with) {
      if (!sums) {
        c.cost = cost_with({});
        all.push_back(c);
        return;
      }
      c.reads.emplace_back("allreduce");
      c.values = chosen;
      for (const auto& [collective, cost] : collectives) {
        c.collective = collective;
        c.cost = cost_with(sum_cost(cost, chosen));
        all.push_back(c);
      }
    };
    if (sparsifier.exchange == "allreduce") {
      Sparsifier layers = sparsifier;
      layers.scope = Scope::layer;
      add_dense(all, c, overlap, loads_of(arena, flat, layers, density, settings), formats,
                collectives);
    } else if (sparsifier.exchange == "powersgd") {
      add(true, [](const SumCost& sum) {
        return [sum](const LinkCost& link, int ranks, const Load& load) {
          return seconds_of(sum, link, ranks, load.sums);
        };
      });
    } else if (sparsifier.exchange == "root") {
      const std::string& collective = reduces().find(settings.text("root.collective")).name;
      c.cost = [reduce = reduce_costs().at(collective),
                broadcast = broadcast_costs().at(collective)](const LinkCost& link, int ranks,
                                                              const Load& load) {
        return reduce(link, ranks, load.d) + broadcast(link, ranks, load.d);
      };
      all.push_back(c);
    } else if (sparsifier.exchange == "hierarchical") {
      const std::string& inner = settings.text("hierarchical.exchange");
      const int node = static_cast<int>(settings.integer("hierarchical.node"));
      c.reads.emplace_back("allreduce");  // for the sums inside nodes
      add(sums_values(inner), [&settings, inner, node](const SumCost& sum) {
        return [between = exchange_cost(inner, settings, sum), node](const LinkCost& link,
                                                                     int ranks, const Load& load) {
          return between(link, NodePlan{ranks, node}.nodes(), load.d, load.k);
        };
      });
    } else if (sparse_costs().contains(sparsifier.exchange)) {
      const std::string& exchange = sparsifier.exchange;
      const bool sums = sums_values(exchange) || std::ranges::any_of(c.loads, [](const Load& load) {
                          return load.dense > 0;
                        });
      add(sums, [&settings, exchange](const SumCost& sum) {
        return [sum, cost = exchange_cost(exchange, settings, sum)](const LinkCost& link, int ranks,
                                                                    const Load& load) {
          return (load.k > 0 ? cost(link, ranks, load.d, load.k) : 0) +
                 (load.dense > 0 ? sum(link, ranks, load.dense) : 0);
        };
      });
    }
  }
  return all;
}

std::vector<std::string> volume_notes(const std::vector<Prediction>& all) {
  std::vector<std::pair<std::string, std::string>> notes;  // what is sent; names
  std::set<std::string> seen;                              // several collectives
  for (const Prediction& c : all) {
    if (c.volume == Volume::exactly_k || !seen.insert(c.sparsifier).second) continue;
    double k = 0, dense = 0;
    for (const Load& load : c.loads) k += load.k, dense += load.dense;
    const std::string sent = fmt::format(
        "prediction for {:.0f} entries{} per step and rank; sent, depending on the gradients: {}",
        k, dense > 0 ? fmt::format(" and {:.0f} of small tensors", dense) : "",
        volume_text(c.volume, static_cast<size_t>(k)));
    const auto known = std::ranges::find(notes, sent, &std::pair<std::string, std::string>::first);
    if (known == notes.end())
      notes.emplace_back(sent, c.sparsifier);
    else
      known->second += ", " + c.sparsifier;
  }
  std::vector<std::string> lines;
  for (const auto& [sent, names] : notes) lines.push_back(names + ": " + sent);
  return lines;
}

}  // namespace tw
