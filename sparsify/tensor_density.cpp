#include "sparsify/tensor_density.h"

#include <fnmatch.h>

#include <ranges>

#include "engine/core/text.h"

namespace tw {

namespace {

struct Rule {
  std::string pattern;
  double density;
  bool used = false;
  bool matches(const std::string& name) const {
    return fnmatch(pattern.c_str(), name.c_str(), 0) == 0 ||
           fnmatch((pattern + ".*").c_str(), name.c_str(), 0) == 0;
  }
};

std::vector<Rule> rules_in(const std::string& text) {
  std::vector<Rule> rules;
  for (const std::string& rule : split(text + ",", ',')) {
    const size_t at = rule.rfind('=');
    check(at != std::string::npos && at > 0,
          "[train] density-of has \"{}\"; expected TENSOR=DENSITY, such as fc=0.1", rule);
    const double density = number_in<double>(rule.substr(at + 1)).value_or(0);
    check(density > 0 && density <= 1,
          "[train] density-of has {}; expected a density above 0 and at most 1", rule);
    rules.insert(rules.begin(), {rule.substr(0, at), density});  // the last counts
  }
  return rules;
}

}  // namespace

void set_densities(std::vector<Bucket>& buckets, const ParameterArena& arena,
                   const std::string& text) {
  if (text.empty()) return;
  std::vector<Rule> rules = rules_in(text);
  std::vector<std::string> names;  // of tensors that are selected from
  for (Bucket& bucket : buckets) {
    if (bucket.packed) continue;
    bucket.densities.assign(bucket.segments.size(), 0);
    for (size_t i = 0; i < bucket.segments.size(); ++i) {
      const auto p =
          std::ranges::find(arena.parameters(), bucket.segments[i].offset, &Parameter::offset);
      names.push_back(p->name);
      const auto rule = std::ranges::find_if(rules, [&](auto& r) { return r.matches(p->name); });
      if (rule == rules.end()) continue;
      bucket.densities[i] = rule->density;
      rule->used = true;
    }
  }
  for (const Rule& rule : rules) {
    check(std::ranges::any_of(names, [&](const std::string& name) { return rule.matches(name); }),
          "[train] density-of names {}, which no tensor that is selected from matches{}",
          rule.pattern, nearest_hint(rule.pattern, names));
    check(rule.used, "[train] density-of: later patterns match all tensors of {}", rule.pattern);
  }
}

}  // namespace tw
