#include "apps/advise/prediction.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "comm/collectives/collectives.h"
#include "sparsify/step_costs.h"

namespace tw {

namespace {

const size_t kBucketBytes = SgdConfig{}.bucket_bytes;

/// An exchange with the settings of its messages, and that of small tensors.
Load load_of(std::shared_ptr<Exchange> exchange, size_t d, size_t k, size_t dense,
             const Settings& settings) {
  return {.k = k,
          .dense = dense,
          .seconds = [exchange = std::move(exchange), d, k, dense,
                      small = std::shared_ptr<Exchange>(dense_exchange().value(settings))](
                         const LinkCost& link, int ranks) {
            return (k > 0 ? exchange->seconds(link, ranks, d, k) : 0) +
                   (dense > 0 ? small->seconds(link, ranks, dense, dense) : 0);
          }};
}

std::vector<Load> loads_of(const ParameterArena& arena, size_t flat, const Sparsifier& sparsifier,
                           double density, const Settings& settings) {
  const Volume volume = volume_of(sparsifier, settings, density);
  const ExchangeEntry& entry = exchanges().find(sparsifier.exchange).value;
  if (flat > 0)
    return {load_of(entry(settings), flat,
                    density < 1 ? entries_to_keep(density, flat, volume) : flat, 0, settings)};
  std::vector<Load> loads;
  size_t end = arena.parameters().size();  // buckets start at the end of the vector
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, kBucketBytes)) {
    Load& load = loads.emplace_back(load_of(entry(settings, plan_exchange(arena, bucket, 1)),
                                            bucket.length, bucket.entries(density, volume),
                                            bucket.dense_length(), settings));
    load.end_parameter = end;
    load.first_parameter = end - bucket.parameters;
    end = load.first_parameter;
  }
  return loads;
}

/// The settings with this collective of dense sums and these values in its messages.
Settings summing_by(Settings settings, const std::string& collective, ValueFormat values) {
  settings.set(kSumCollective, collective);
  settings.set(kSumValues, std::string(name(values)));
  return settings;
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
  if (values != ValueFormat::f32) flags += fmt::format(" --set {}={}", kSumValues, name(values));
  if (overlap) flags += " --scope layer --overlap";
  if (local_steps > 1) flags += fmt::format(" --local-steps {}", local_steps);
  return flags;
}

double Prediction::exchange_seconds(const Costs& costs, int ranks) const {
  const auto step = costs.step.find(sparsifier);
  double sum = step == costs.step.end() ? 0 : step->second.exchange;
  if (!overlap) {
    for (const Load& load : loads) sum += load.seconds(costs.link, ranks);
    return sum / static_cast<double>(local_steps);
  }
  // one exchange at a time, each after the last gradient of its bucket
  const std::span<const double> ready = costs.compute.ready;
  double end = 0;
  for (const Load& load : loads) {
    const auto bucket =
        ready.subspan(load.first_parameter, load.end_parameter - load.first_parameter);
    end = std::max(end, std::ranges::max(bucket)) + load.seconds(costs.link, ranks);
  }
  return sum + std::max(0.0, end - costs.compute.backward);
}

double Prediction::seconds(const Costs& costs, int ranks) const {
  const double alone = local_steps > 1 ? costs.update(kDense) : 0;
  return costs.compute.seconds() + alone +
         costs.update(sparsifier) / static_cast<double>(local_steps) +
         exchange_seconds(costs, ranks);
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
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const Sparsifier sparsifier = resolve_sparsifier({.sparsifier = name}, settings);
    const ExchangeEntry& exchange = exchanges().find(sparsifier.exchange).value;
    if (local_steps > 1 && exchange.updates_at_root) continue;
    Prediction c{
        .sparsifier = name,
        .dense = !keeps_residual(sparsifier),
        .selects = !sparsifier.selector.empty(),
        .reads = {name, sparsifier.selector, sparsifier.exchange, "wire", "momentum_correction"},
        .local_steps = local_steps,
        .loads = loads_of(arena, flat, sparsifier, density, settings),
        .volume = volume_of(sparsifier, settings, density)};
    const bool sums = exchange(settings)->sums_densely() ||
                      std::ranges::any_of(c.loads, [](const Load& load) { return load.dense > 0; });
    if (sums || exchange.forms_nodes) c.reads.push_back(dense_exchange().name);
    if (!sums) {
      all.push_back(c);
      continue;
    }
    // dense SGD also with shorter messages and during backward
    std::vector<ValueFormat> formats{chosen};
    std::vector<bool> during_backward{false};
    if (c.dense && chosen == ValueFormat::f32) formats.push_back(ValueFormat::bf16);
    if (c.dense && overlap && flat == 0 && local_steps == 1) during_backward.push_back(true);
    for (const std::string& collective : collectives)
      for (const ValueFormat values : formats)
        for (const bool overlaps : during_backward) {
          Sparsifier parts = sparsifier;
          if (overlaps) parts.scope = Scope::layer;
          c.collective = collective;
          c.values = values;
          c.overlap = overlaps;
          c.loads = loads_of(arena, flat, parts, density, summing_by(settings, collective, values));
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
    size_t k = 0, dense = 0;
    for (const Load& load : c.loads) k += load.k, dense += load.dense;
    const std::string sent = fmt::format(
        "prediction for {} entries{} per step and rank; sent, depending on the gradients: {}", k,
        dense > 0 ? fmt::format(" and {} of small tensors", dense) : "", volume_text(c.volume, k));
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
