#include "apps/advise/prediction.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

#include "comm/collectives/collectives.h"
#include "sparsify/sgd_plan.h"

namespace tw {

namespace {

/// Sets what follows from the exchanges of `plan`.
void set_loads(Prediction& of, const std::shared_ptr<const SgdPlan>& plan, double density) {
  of.entries = plan->entries(density);
  of.packed = plan->packed_elements();
  of.volume = plan->volume(density);
  of.loads.clear();
  size_t end = 0;
  for (const Bucket& bucket : plan->buckets) end += bucket.parameters;
  for (const Bucket& bucket : plan->buckets) {  // from the end of the vector
    const size_t first = end - bucket.parameters, k = bucket.entries(density, of.volume);
    of.loads.push_back({.first_parameter = first,
                        .end_parameter = std::exchange(end, first),
                        .seconds = [plan, &bucket, k](const LinkCost& link, int ranks) {
                          return bucket.seconds(link, ranks, k);
                        }});
  }
}

}  // namespace

std::string Prediction::how() const {
  return (values != ValueFormat::f32 ? fmt::format(" {}", name(values)) : "") +
         (overlap ? " overlap" : "");
}

std::string Prediction::kind() const {
  return sparsifier + how() + (local_steps > 1 ? fmt::format(" H={}", local_steps) : "");
}

std::string Prediction::label() const {
  return sparsifier + (collective.empty() ? "" : " " + collective) + how() +
         (local_steps > 1 ? fmt::format(" H={}", local_steps) : "");
}

std::string Prediction::flags() const {
  std::string flags = "--sparsifier " + sparsifier;
  if (!collective.empty()) flags += " --allreduce " + collective;
  for (const auto& [key, value] : settings)
    if (key != kSumCollective || collective.empty())
      flags += fmt::format(" --set {}={}", key, value);
  if (overlap) flags += " --scope layer --overlap";
  if (local_steps > 1) flags += fmt::format(" --local-steps {}", local_steps);
  return flags;
}

double end_of(const std::vector<OverlappedExchange>& exchanges, double backward,
              std::vector<double>& densities, bool raise) {
  double end = 0;
  for (size_t i = 0; i < exchanges.size(); ++i) {
    const double begin = std::max(end, exchanges[i].ready);
    const double next = i + 1 < exchanges.size() ? exchanges[i + 1].ready : backward;
    const auto fits = [&](double density) { return begin + exchanges[i].seconds(density) <= next; };
    if (raise && fits(densities[i])) {
      double most = fits(1) ? 1 : densities[i], more = 1;
      while (more > most * (1 + 1e-9)) {
        const double middle = std::sqrt(most * more);
        (fits(middle) ? most : more) = middle;
      }
      const double digit = std::pow(10, std::floor(std::log10(most)) - 2);
      densities[i] = std::max(densities[i], std::floor(most / digit + 1e-6) * digit);
    }
    end = begin + exchanges[i].seconds(densities[i]);
  }
  return end;
}

double Prediction::exchange_seconds(const Costs& costs, int ranks) const {
  const auto step = costs.step.find(sparsifier);
  double sum = step == costs.step.end() ? 0 : step->second.exchange;
  if (!overlap) {
    for (const Load& load : loads) sum += load.seconds(costs.link_of(ranks), ranks);
    return sum / static_cast<double>(local_steps);
  }
  const std::span<const double> ready = costs.compute.ready;
  std::vector<OverlappedExchange> exchanges;
  for (const Load& load : loads) {  // each after the last gradient of its bucket
    const auto bucket =
        ready.subspan(load.first_parameter, load.end_parameter - load.first_parameter);
    exchanges.push_back(
        {.ready = costs.slowness(ranks) * std::ranges::max(bucket),
         .seconds = [&](double) { return load.seconds(costs.link_of(ranks), ranks); }});
  }
  std::vector<double> densities(exchanges.size());
  const double backward = costs.slowness(ranks) * costs.compute.backward;
  return sum + std::max(0.0, end_of(exchanges, backward, densities) - backward);
}

double Prediction::seconds(const Costs& costs, int ranks) const {
  const double alone = local_steps > 1 ? costs.update(kDense) : 0;
  return costs.compute_seconds(ranks) + alone +
         costs.update(sparsifier) / static_cast<double>(local_steps) +
         exchange_seconds(costs, ranks);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): reading marks the copy
std::map<std::string, std::string> changed_settings(const SgdConfig& config, Settings settings,
                                                    const ParameterArena& arena) {
  const Settings usual = default_settings();
  Context ctx;
  settings.forget_reads();
  read_settings(ctx, config, settings, arena);
  std::map<std::string, std::string> changed;
  for (const auto& [key, value] : settings.values())
    if (value != usual.text(key)) changed.emplace(key, value);
  for (const std::string& key : settings.unread({kNodeSetting})) changed.erase(key);
  return changed;
}

std::vector<std::string> allowed_sums(const Settings& settings) {
  std::vector<std::string> known;
  for (const auto& [name, entry] : allreduces().entries())
    if (!std::isnan(entry.value.seconds({}, 2, 1))) known.push_back(name);
  const std::string& given = settings.text(kSumCollective);
  const std::string& chosen = allreduces().find(given).name;
  check(!settings.was_set(kSumCollective) || std::ranges::find(known, chosen) != known.end(),
        "[settings] {}={} has no cost model; expected one of: {}", kSumCollective, given,
        fmt::join(known, ", "));
  for (const auto& [name, entry] : exchanges().entries()) {
    const auto exchange = entry.value(settings);
    std::string how;
    for (const Setting& setting : entry.settings) {
      const std::string key = name + "." + setting.key;
      how += fmt::format("{}{}={}", how.empty() ? " with " : " ", key, settings.text(key));
    }
    check(exchange->sums_densely() || !std::isnan(exchange->seconds({}, 2, 1, 1)),
          "[settings] the exchange {} has no cost model{}", name, how);
  }
  return settings.was_set(kSumCollective) ? std::vector{chosen} : known;
}

std::vector<Prediction> predictions(const ParameterArena& arena, size_t flat, double density,
                                    bool overlap, const Settings& settings, int64_t local_steps) {
  std::vector<Prediction> all;
  const std::vector<std::string> collectives = allowed_sums(settings);
  const ValueFormat chosen = value_format(settings.text(kSumValues));
  ParameterArena one;
  if (flat > 0) one.add({.name = "flat", .shape = {static_cast<int64_t>(flat)}});
  const ParameterArena& network = flat > 0 ? one : arena;
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const std::optional<Scope> scope = flat > 0 ? std::optional(Scope::model) : std::nullopt;
    SgdConfig config{.sparsifier = name, .scope = scope};
    const auto plan = std::make_shared<SgdPlan>(network, config, settings);
    const Sparsifier& sparsifier = plan->sparsifier;
    const ExchangeEntry& exchange = exchanges().find(sparsifier.exchange).value;
    if (local_steps > 1 && exchange.updates_at_root) continue;
    config.local_steps = local_steps > 1 ? local_steps : 0;
    Prediction c{.sparsifier = name,
                 .dense = !keeps_residual(sparsifier),
                 .selects = !sparsifier.selector.empty(),
                 .settings = changed_settings(config, settings, network),
                 .local_steps = local_steps};
    set_loads(c, plan, density);
    if (!exchange(settings)->sums_densely() && c.packed == 0) {
      all.push_back(c);
      continue;
    }
    // dense SGD also with shorter messages and during backward
    std::vector<ValueFormat> formats{chosen};
    std::vector<bool> during_backward{false};
    if (c.dense && chosen == ValueFormat::f32) formats.push_back(ValueFormat::bf16);
    if (c.dense && overlap && flat == 0 && local_steps == 1) during_backward.push_back(true);
    Settings sums_by = settings;
    for (const std::string& collective : collectives)
      for (const ValueFormat values : formats)
        for (const bool overlaps : during_backward) {
          config.scope = overlaps ? Scope::layer : scope;
          c.collective = collective;
          c.values = values;
          c.overlap = overlaps;
          sums_by.set(kSumCollective, collective);
          sums_by.set(kSumValues, tw::name(values));
          c.settings = changed_settings(config, sums_by, network);
          set_loads(c, std::make_shared<SgdPlan>(network, config, sums_by), density);
          all.push_back(c);
        }
  }
  return all;
}

std::vector<std::string> volume_notes(const std::vector<Prediction>& all) {
  std::vector<std::pair<std::string, std::string>> notes;  // what is sent; names
  std::set<std::string> seen;                              // several collectives
  for (const Prediction& c : all) {
    if (c.volume == Volume::exactly_k || !seen.insert(c.sparsifier).second) continue;
    const std::string sent = fmt::format(
        "prediction for {} entries{} per step and rank; sent, depending on the gradients: {}",
        c.entries, c.packed > 0 ? fmt::format(" and {} of small tensors", c.packed) : "",
        volume_text(c.volume, c.entries));
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
