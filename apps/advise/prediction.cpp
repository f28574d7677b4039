#include "apps/advise/prediction.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "comm/collectives/collectives.h"
#include "comm/subcommunicator.h"
#include "sparsify/encoding/sparse_codec.h"

namespace tw {

namespace {

const size_t kBucketBytes = SgdConfig{}.bucket_bytes;
constexpr double kBitsAnElement = 32;

/// Whether a sparsifier may be recommended. Not `randk`, which ends at a lower accuracy than the
/// others; `powersgd` and `scalecom`, whose accuracy after a whole training is not measured here;
/// `exact`, a reference for tests; and `hierarchical`, whose cost depends on which ranks share a
/// node, unknown for larger runs.
bool recommendable(const Prediction& c) {
  constexpr const char* kNever[] = {"randk", "powersgd", "scalecom", "exact", "hierarchical"};
  return std::ranges::find(kNever, c.sparsifier) == std::end(kNever);
}

std::vector<Load> loads_of(const ParameterArena& arena, size_t flat, const Sparsifier& sparsifier,
                           double density, const Settings& settings) {
  const auto kept = [&](size_t n) {
    return static_cast<double>(density < 1 ? entries_to_keep(density, n) : n);
  };
  const ExchangeEntry& entry = exchanges().find(sparsifier.exchange).value;
  if (flat > 0)
    return {{.d = static_cast<double>(flat),
             .k = kept(flat),
             .sums = entry(settings)->dense_sums(flat)}};
  std::vector<Load> loads;
  for (const Bucket& bucket : plan_buckets(arena, sparsifier, kBucketBytes)) {
    Load load{.d = static_cast<double>(bucket.length),
              .dense = static_cast<double>(bucket.dense_length()),
              .sums = entry(settings, plan_exchange(arena, bucket, 1))->dense_sums(bucket.length)};
    for (const Segment& segment : bucket.sparse) load.k += kept(segment.length);
    loads.push_back(load);
  }
  return loads;
}

/// The link with the bytes that the codec takes for an entry.
LinkCost carrying(const LinkCost& link, const SparseCodec& format, const Load& load) {
  const auto entries = static_cast<size_t>(load.k);
  if (entries == 0) return link;
  const uint64_t bytes = format.expected_bytes(1, entries, 1, static_cast<size_t>(load.d));
  LinkCost other = link;
  other.entry_bytes = static_cast<double>(bytes) / load.k;
  return other;
}

LinkCost messages_in(ValueFormat values, const LinkCost& link) {
  return values == ValueFormat::f32 ? link : half_messages(link);
}

const Prediction& fastest(const std::vector<Prediction>& all, const LinkCost& link, int ranks,
                          bool (*allowed)(const Prediction&)) {
  const Prediction* result = nullptr;
  for (const Prediction& c : all)
    if (allowed(c) && (!result || c.seconds(link, ranks) < result->seconds(link, ranks)))
      result = &c;
  check<std::logic_error>(result != nullptr, "[advise] no candidate");
  return *result;
}

std::string bandwidth_text(double bits) {
  return bits >= 1e9 ? fmt::format("{:.3g} Gbit/s", bits * 1e-9)
                     : fmt::format("{:.3g} Mbit/s", bits * 1e-6);
}

std::string flags_of(const Prediction& c) {
  std::string flags = "--sparsifier " + c.sparsifier;
  if (!c.collective.empty()) flags += " --allreduce " + c.collective;
  if (c.values != ValueFormat::f32)
    flags += fmt::format(" --set allreduce.values={}", name(c.values));
  return flags;
}

}  // namespace

std::string Prediction::collective_text() const {
  return values == ValueFormat::f32 ? collective : fmt::format("{} {}", collective, name(values));
}

double Prediction::exchange_seconds(const LinkCost& link, int ranks) const {
  double sum = step.exchange;
  for (const Load& load : loads) sum += cost(link, ranks, load);
  return sum;
}

std::vector<Prediction> candidates(const ParameterArena& arena, size_t flat, double density,
                                   const LocalCosts& local, const Settings& settings) {
  std::vector<Prediction> all;
  const DenseCost ring = allreduce_costs().at("ring");
  const SparseCodec format(settings);
  const std::string& chosen_sum = settings.text("allreduce.collective");
  const ValueFormat chosen = value_format(settings.text("allreduce.values"));
  std::vector<ValueFormat> formats{chosen};
  if (chosen == ValueFormat::f32) formats.push_back(ValueFormat::bf16);
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const Sparsifier sparsifier = resolve_sparsifier({.sparsifier = name}, settings);
    Prediction c{.sparsifier = name,
                 .dense = !keeps_residual(sparsifier),
                 .compute = local.compute,
                 .loads = loads_of(arena, flat, sparsifier, density, settings)};
    if (const auto known = local.step.find(name); known != local.step.end()) c.step = known->second;
    if (!sparsifier.selector.empty() && density < 1)
      c.volume = selectors().find(sparsifier.selector).value.volume(settings);
    if (sparsifier.exchange == "allreduce") {
      for (const auto& [collective, cost] : allreduce_costs())
        for (const ValueFormat values : formats) {
          c.collective = collective;
          c.values = values;
          c.cost = [cost = cost, values](const LinkCost& link, int ranks, const Load& load) {
            return cost(messages_in(values, link), ranks, load.d);
          };
          all.push_back(c);
        }
    } else if (sparsifier.exchange == "powersgd") {
      // two sums by the chosen collective; the vendor's has no model
      const auto found = allreduce_costs().find(allreduces().find(chosen_sum).name);
      c.cost = [cost = found == allreduce_costs().end() ? ring : found->second, chosen](
                   const LinkCost& link, int ranks, const Load& load) {
        const LinkCost values = messages_in(chosen, link);
        const auto of = [&](size_t n) { return cost(values, ranks, static_cast<double>(n)); };
        return of(load.sums.first) + (load.sums.second > 0 ? of(load.sums.second) : 0);
      };
      all.push_back(c);
    } else if (sparsifier.exchange == "root") {
      const std::string& collective = reduces().find(settings.text("root.collective")).name;
      c.cost = [reduce = reduce_costs().at(collective),
                broadcast = broadcast_costs().at(collective)](const LinkCost& link, int ranks,
                                                              const Load& load) {
        return reduce(link, ranks, load.d) + broadcast(link, ranks, load.d);
      };
      all.push_back(c);
    } else if (sparsifier.exchange == "hierarchical") {
      const auto between = sparse_costs().at(settings.text("hierarchical.exchange"));
      const int node = static_cast<int>(settings.integer("hierarchical.node"));
      c.cost = [between, node, format](const LinkCost& link, int ranks, const Load& load) {
        return between(carrying(link, format, load), NodePlan{ranks, node}.nodes(), load.d, load.k);
      };
      all.push_back(c);
    } else if (const auto found = sparse_costs().find(sparsifier.exchange);
               found != sparse_costs().end()) {
      c.cost = [ring, chosen, format, cost = found->second](const LinkCost& link, int ranks,
                                                            const Load& load) {
        return (load.k > 0 ? cost(carrying(link, format, load), ranks, load.d, load.k) : 0) +
               (load.dense > 0 ? ring(messages_in(chosen, link), ranks, load.dense) : 0);
      };
      all.push_back(c);
    }
  }
  return all;
}

std::vector<std::string> volume_notes(const std::vector<Prediction>& all) {
  std::vector<std::string> notes;
  for (const Prediction& c : all) {
    if (c.volume == Volume::exactly_k) continue;
    double k = 0;
    for (const Load& load : c.loads) k += load.k;
    notes.push_back(
        fmt::format("{}: prediction for {:.0f} entries per step and rank; depending on the "
                    "gradients it sends {}",
                    c.sparsifier, k, volume_text(c.volume, static_cast<size_t>(k))));
  }
  return notes;
}

const Prediction& best(const std::vector<Prediction>& all, const LinkCost& link, int ranks) {
  const Prediction& first = fastest(all, link, ranks, recommendable);
  // ties go to the simplest sparsifier
  for (const Prediction& c : all)
    if (c.sparsifier == "topk" && c.seconds(link, ranks) < 1.001 * first.seconds(link, ranks))
      return c;
  return first;
}

const Prediction& best_dense(const std::vector<Prediction>& all, const LinkCost& link, int ranks) {
  return fastest(all, link, ranks, [](const Prediction& c) { return c.dense; });
}

double break_even(const Prediction& sparse, const std::vector<Prediction>& all,
                  const LinkCost& link, int ranks) {
  const auto dense_wins = [&](double bits) {
    LinkCost other = link;
    other.beta = kBitsAnElement / bits;
    return best_dense(all, other, ranks).seconds(other, ranks) < sparse.seconds(other, ranks);
  };
  double low = 1e3, high = 1e15;  // 1 kbit/s, 1 Pbit/s
  if (dense_wins(low)) return 0;
  if (!dense_wins(high)) return std::numeric_limits<double>::infinity();
  while (high / low > 1.0001) {
    const double middle = std::sqrt(low * high);
    (dense_wins(middle) ? high : low) = middle;
  }
  return low;
}

std::vector<std::string> recommendations(const std::vector<Prediction>& all, const LinkCost& link,
                                         const std::vector<int64_t>& ranks) {
  std::vector<std::string> sentences;
  for (size_t i = 0; i < ranks.size();) {
    const int first = static_cast<int>(ranks[i]);
    const Prediction& winner = best(all, link, first);
    int last = first;
    while (i < ranks.size() && &best(all, link, static_cast<int>(ranks[i])) == &winner)
      last = static_cast<int>(ranks[i++]);

    const Prediction& dense = best_dense(all, link, last);
    const double seconds = winner.seconds(link, last);
    std::string text =
        first == last ? fmt::format("{} ranks", last) : fmt::format("{} to {} ranks", first, last);
    text +=
        fmt::format(": use {}; at {} an iteration takes {:.4g} s", flags_of(winner), last, seconds);
    if (winner.dense) {
      text += ", no sparse exchange is faster on this link";
    } else {
      const double bits = break_even(winner, all, link, last);
      text +=
          fmt::format(", {:.3g} times as fast as dense ({})", dense.seconds(link, last) / seconds,
                      dense.collective.empty() ? dense.sparsifier : dense.collective_text());
      text += std::isinf(bits) ? "; dense is slower at any bandwidth"
                               : fmt::format("; dense is faster above {}", bandwidth_text(bits));
    }
    sentences.push_back(text);
  }
  return sentences;
}

}  // namespace tw
