// SyncSgd of one rank over a small arena, variants of all sparsifiers, and gradients with exact and
// with rounded sums.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "comm/transports.h"
#include "engine/core/rng.h"
#include "sparsify/sync_sgd.h"

namespace tw {

/// A sparsifier with its default settings or with one setting of its parts changed.
struct Variant {
  std::string sparsifier;
  Settings settings = default_settings();
  std::string name = sparsifier;
  bool conserves = true;  ///< sum + new residuals = gradients + old residuals
  bool lossless = true;   ///< values are sent unrounded and unscaled
  bool brief = false;     ///< tests try only one length and one kind of gradient

  /// Whether gradients with a large norm are scaled down before the selection.
  bool clips() const { return settings.number("momentum_correction.clip") > 0; }
};
inline void PrintTo(const Variant& variant, std::ostream* out) { *out << variant.name; }
inline std::string test_name(const testing::TestParamInfo<Variant>& of) {
  std::string name = of.param.name;
  std::ranges::replace_if(
      name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

namespace detail {

/// The values of a setting to try besides its default: the other value of a flag, the other
/// choices, and the ends of a number's range. Without an upper end, a value above the default. A
/// number for one that is `auto` or a number.
inline std::vector<std::string> other_values(const Setting& setting) {
  if (setting.value == "auto" && setting.choices.empty()) return {"1.5"};
  if (setting.value == "true") return {"false"};
  if (setting.value == "false") return {"true"};
  std::vector<std::string> values = setting.choices;
  if (setting.least) {
    const double standard = std::stod(setting.value);
    for (const double value : {*setting.least, setting.most.value_or(2 * standard + 1)})
      if (value != standard) values.push_back(fmt::format("{}", value));
  }
  std::erase(values, setting.value);
  return values;
}

inline void add_choices(std::vector<Variant>& all, const std::string& sparsifier,
                        const std::string& prefix, const std::vector<Setting>& settings) {
  for (const Setting& setting : settings)
    for (const std::string& value : other_values(setting)) {
      Variant other{.sparsifier = sparsifier};
      const std::string key = prefix + "." + setting.key;
      // the gradients of exact_kinds() exceed its range; HalfMessages tests it
      if (key == "allreduce.values" && value == "fp16") continue;
      other.settings.set(key, value);
      other.name = fmt::format("{} {}={}", sparsifier, key, value);
      other.lossless = key != "wire.values" && key != "allreduce.values";
      // the low-pass filter forgets a part of the residual
      other.conserves = key != "allreduce.values" && key != "scalecom.beta";
      other.brief = setting.least && std::stod(value) > *setting.least;
      all.push_back(other);
    }
}

}  // namespace detail

/// True if gTop-k's tree is used, between all ranks or between nodes.
inline bool uses_gtopk(const Variant& variant) {
  const std::string& exchange = sparsifiers().find(variant.sparsifier).value.exchange;
  return exchange == "gtopk" ||
         (exchange == "hierarchical" && variant.settings.text("hierarchical.exchange") == "gtopk");
}

/// True if the exchange compresses the gradient without a selection.
inline bool compresses(const Variant& variant) {
  const Sparsifier& sparsifier = sparsifiers().find(variant.sparsifier).value;
  return exchanges().find(sparsifier.exchange).value.compresses;
}

/// Every sparsifier with its defaults, and with each of detail::other_values of each setting of its
/// parts. The settings of the wire format are varied for one sparsifier per exchange, and only on
/// threads: many processes on few cores are slow.
inline std::vector<Variant> variants() {
  std::vector<Variant> all;
  std::vector<std::string> seen;
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const auto& [selector, exchange] = std::pair(entry.value.selector, entry.value.exchange);
    all.push_back({.sparsifier = name});
    if (!selector.empty())
      detail::add_choices(all, name, selector, selectors().find(selector).settings);
    detail::add_choices(all, name, exchange, exchanges().find(exchange).settings);
    const auto add_group = [&, &name = name](const std::string& group) {
      detail::add_choices(all, name, group, setting_groups().find(group).settings);
    };
    if (entry.value.momentum_before) add_group("momentum_correction");
    if (started_by_mpi() || selector.empty() || entry.value.momentum_before ||
        std::ranges::find(seen, exchange) != seen.end())
      continue;
    seen.push_back(exchange);
    add_group("wire");
  }
  // such an exchange needs a selector with shared indices, which these sparsifiers lack
  std::erase_if(all, [](const Variant& variant) {
    const std::string& exchange = sparsifiers().find(variant.sparsifier).value.exchange;
    return exchanges().find(exchange).value.needs_shared_indices(variant.settings);
  });
  for (Variant& variant : all) {
    const bool keeps = !uses_gtopk(variant) || variant.settings.text("gtopk.put_back") != "paper";
    // factors are rounded, and their product is not the gradient; quantized residuals are short
    // floats after one step only
    const bool rounds = compresses(variant);
    variant.conserves = variant.conserves && keeps && !variant.clips() && !rounds;
    variant.lossless = variant.lossless && !variant.clips() && !rounds;
  }
  return all;
}

inline std::vector<Variant> variants_of(const std::string& sparsifier) {
  std::vector<Variant> all = variants();
  std::erase_if(all, [&](const Variant& variant) { return variant.sparsifier != sparsifier; });
  return all;
}

/// The selector of a variant's sparsifier; "" if it selects nothing.
inline std::string selector_of(const Variant& variant) {
  return sparsifiers().find(variant.sparsifier).value.selector;
}

/// The variants that differ in the selector or in its own settings.
inline std::vector<Variant> selector_variants() {
  std::vector<Variant> all = variants();
  std::set<std::string> seen;
  std::erase_if(all, [&](const Variant& variant) {
    std::string choice = selector_of(variant);
    if (choice.empty()) return true;
    for (const auto& [key, value] : variant.settings.values())
      if (key.starts_with(selector_of(variant) + ".")) choice += " " + key + "=" + value;
    return !seen.insert(choice).second;
  });
  return all;
}

/// Gradient element i of a rank in a step.
struct GradientKind {
  const char* name;
  float (*value)(uint32_t hash, size_t i);
};
/// Integers (or multiples of the least denormal): sums are exact in any order.
inline const std::vector<GradientKind>& exact_kinds() {
  static const std::vector<GradientKind> kinds = {
      {"many ties", [](uint32_t h, size_t) { return static_cast<float>(int(h % 11) - 5); }},
      {"wide", [](uint32_t h, size_t) { return static_cast<float>(int(h >> 8) % 20011 - 10005); }},
      {"zeros", [](uint32_t, size_t) { return 0.0f; }},
      {"equal", [](uint32_t, size_t) { return 3.0f; }},
      {"negative", [](uint32_t h, size_t) { return -static_cast<float>(1 + h % 1000); }},
      {"sparse", [](uint32_t h, size_t i) { return i % 97 == 3 ? float(h % 100) : 0.0f; }},
      {"denormal",
       [](uint32_t h, size_t) { return static_cast<float>(int(h % 31) - 15) * 0x1p-149f; }},
  };
  return kinds;
}
/// Magnitudes over forty powers of two: sums round, and another order gives other bits.
inline const GradientKind& rounding_kind() {
  static const GradientKind kind = {"rounding", [](uint32_t h, size_t) {
                                      return std::ldexp(static_cast<float>(h >> 8) - 0x1p23f,
                                                        -static_cast<int>(h % 40));
                                    }};
  return kind;
}
inline std::vector<GradientKind> all_kinds() {
  std::vector<GradientKind> kinds = exact_kinds();
  kinds.push_back(rounding_kind());
  return kinds;
}

/// The shape of a tensor of `length` elements that is as square as its divisors allow.
inline Shape matrix_shape(size_t length) {
  size_t columns = 1;
  for (size_t i = 1; i * i <= length; ++i)
    if (length % i == 0) columns = i;
  return {static_cast<int64_t>(length / columns), static_cast<int64_t>(columns)};
}

class SgdRig {
 public:
  SgdRig(Context& ctx, Communicator& comm, size_t d, const SgdConfig& config,
         const Settings& settings = default_settings())
      : comm_(comm) {
    // a weight, a bias without decay, and another weight
    const std::vector<size_t> lengths =
        d < 4 ? std::vector<size_t>{d} : std::vector<size_t>{d / 2, d / 4, d - d / 2 - d / 4};
    for (size_t i = 0; i < lengths.size(); ++i) {
      const auto length = static_cast<int64_t>(lengths[i]);
      arena.add({.name = fmt::format("layer{}.weight", i),
                 .shape = i == 1 ? Shape{length} : matrix_shape(lengths[i]),
                 .decay = i != 1});
    }
    arena.allocate(ctx, 1);
    for (size_t i = 0; i < d; ++i) arena.values()[i] = static_cast<float>(i % 13) - 6;
    sgd = std::make_unique<SyncSgd>(ctx, comm, arena, config, settings);
  }

  static float gradient(const GradientKind& kind, int rank, uint64_t step, size_t i) {
    const uint64_t id = (step * 64 + static_cast<uint64_t>(rank)) << 32 | i;
    return kind.value(Philox(5, Purpose::test)(id)[0], i);
  }
  void set_gradients(const GradientKind& kind, uint64_t step) {
    for (size_t i = 0; i < arena.size(); ++i)
      arena.gradients()[i] = gradient(kind, comm_.rank(), step, i);
  }
  StepReport step(const GradientKind& kind, StepInput input) {
    set_gradients(kind, input.step);
    return sgd->step(input);
  }

  ParameterArena arena;
  std::unique_ptr<SyncSgd> sgd;

 private:
  Communicator& comm_;
};

/// The text of the fault that a step of a rig throws; "none" if it throws nothing.
template <class Rig>
std::string fault_of(Rig& rig, const StepInput& input) {
  try {
    rig.sgd->step(input);
  } catch (const CollectiveFault& fault) {
    return fault.what();
  }
  return "none";
}

inline bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

/// The sum of x over the ranks, by plain messages.
inline std::vector<float> summed(Context& ctx, Communicator& comm, std::span<const float> x) {
  std::vector<float> sum(x.begin(), x.end()), passing(sum);
  const int ranks = comm.size();
  for (int hop = 1; hop < ranks; ++hop) {
    std::vector<float> incoming(x.size());
    comm.exchange(ctx, (comm.rank() + 1) % ranks, std::as_bytes(std::span(passing)),
                  (comm.rank() + ranks - 1) % ranks, std::as_writable_bytes(std::span(incoming)));
    for (size_t i = 0; i < x.size(); ++i) sum[i] += incoming[i];
    passing = std::move(incoming);
  }
  return sum;
}

}  // namespace tw
