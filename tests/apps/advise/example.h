// Costs and predictions that several tests of advise share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>

#include "apps/advise/prediction.h"

namespace tw::test {

constexpr size_t kLength = 25 * (size_t{1} << 20);

/// The 1 Gbit/s of Shi et al. 2019; a step computes for 0.5 s and selects for 0.01 s.
inline Costs example_costs() {
  Costs costs{.compute = {.forward = 0.5}, .link = {.alpha = 0.436e-3, .beta = 3.6e-8}};
  for (const auto& [name, entry] : sparsifiers().entries())
    if (keeps_residual(entry.value)) costs.step[name].update = 0.01;
  return costs;
}

/// Predictions for one vector of about ResNet-50's size.
inline std::vector<Prediction> example(std::initializer_list<const char*> assignments = {},
                                       int64_t local_steps = 1) {
  Settings settings = default_settings();
  for (const char* assignment : assignments) settings.set_assignment(assignment);
  return predictions(ParameterArena{}, kLength, 0.001, false, settings, local_steps);
}

inline const Prediction& find(const std::vector<Prediction>& all, const std::string& sparsifier,
                              const std::string& collective = "") {
  const auto it = std::ranges::find_if(all, [&](const Prediction& c) {
    return c.sparsifier == sparsifier && c.collective_text() == collective;
  });
  if (it == all.end()) throw std::logic_error("no prediction of " + sparsifier + " " + collective);
  return *it;
}

}  // namespace tw::test
