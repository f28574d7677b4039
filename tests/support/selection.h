// Selections for tests: one call of a selector, vectors to select from, and a reference by sorting.
#pragma once

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/distributions.h"
#include "sparsify/sync_sgd.h"

namespace tw {

/// The result of one selection.
struct Selection {
  std::vector<uint32_t> indices;
  std::vector<float> values;
  std::vector<float> residual;
  SelectInfo info;
};

inline Selection select(Selector& selector, Context& ctx, std::span<const float> g,
                        std::span<const float> e, size_t k, uint32_t base = 0) {
  Selection result;
  result.residual.assign(e.begin(), e.end());
  SparseVector out;
  result.info = selector.select(ctx,
                                {.g = g,
                                 .e = result.residual,
                                 .k = k,
                                 .density = static_cast<double>(k) / static_cast<double>(g.size()),
                                 .base = base},
                                out);
  result.indices.assign(out.indices.begin(), out.indices.begin() + out.count);
  result.values.assign(out.values.begin(), out.values.begin() + out.count);
  return result;
}

/// Selects from u with a selector at its default settings.
inline Selection select(const std::string& name, std::span<const float> u, size_t k) {
  Context ctx;
  const auto selector = selectors().find(name).value(ctx, default_settings(), {});
  return select(*selector, ctx, u, std::vector<float>(u.size()), k);
}

/// Indices of the k largest magnitudes, lower index first, by a full sort; ascending.
inline std::vector<uint32_t> sorted_top(std::span<const float> u, size_t k) {
  std::vector<uint32_t> order(u.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order,
                           [&](uint32_t a, uint32_t b) { return std::abs(u[a]) > std::abs(u[b]); });
  order.resize(std::min(k, order.size()));
  std::erase_if(order, [&](uint32_t i) { return u[i] == 0; });
  std::ranges::sort(order);
  return order;
}

/// Vectors of many distributions, longer than any sample.
inline std::vector<std::pair<std::string, std::vector<float>>> vectors() {
  constexpr size_t d = 200'003;
  std::vector<std::pair<std::string, std::vector<float>>> all;
  Context ctx;
  for (const auto& [name, draw] : distributions()) {
    all.emplace_back(name, std::vector<float>(d));
    fill_random(ctx, draw, 3, all.back().second);
  }
  const auto add = [&](const std::string& name, const std::function<float(size_t)>& value) {
    std::vector<float> x(d);
    for (size_t i = 0; i < d; ++i) x[i] = value(i);
    all.emplace_back(name, std::move(x));
  };
  add("constant", [](size_t) { return -0.5f; });
  add("zeros", [](size_t) { return 0.0f; });
  add("ascending", [](size_t i) { return static_cast<float>(i); });
  add("descending", [](size_t i) { return -static_cast<float>(d - i); });
  add("few values", [](size_t i) { return static_cast<float>(i * 7919 % 5); });
  add("denormal", [](size_t i) { return static_cast<float>(i * 7919 % 1000) * -0x1p-149f; });
  add("few non-zeros", [](size_t i) { return i % 20011 == 7 ? 1.0f : 0.0f; });
  add("one block", [](size_t i) { return i / 500 == 77 ? static_cast<float>(i) : 1e-3f; });
  add("huge", [](size_t i) { return i % 2 ? 3e38f : -3e38f; });
  return all;
}

}  // namespace tw
