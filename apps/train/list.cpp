#include "apps/train/list.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "comm/collectives/collectives.h"
#include "data/dataset.h"
#include "models/model.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

using Row = std::pair<std::string, std::string>;

/// Rows of two columns, the first as wide as its longest cell.
std::string columns(const std::string& indent, const std::vector<Row>& rows) {
  size_t width = 0;
  for (const auto& [left, right] : rows) width = std::max(width, left.size());
  std::string text;
  for (const auto& [left, right] : rows)
    text += fmt::format("{}{:<{}}  {}\n", indent, left, width, right);
  return text;
}

/// The entries of a registry. Entries with the same name in several registries share their
/// settings; `printed` holds the settings listed so far.
template <class Value>
std::string section(const Registry<Value>& registry, std::set<std::string>& printed) {
  size_t width = 0;
  for (const auto& [name, entry] : registry.entries())
    width = std::max(width, entry.label().size());
  std::string text = registry.kind() + "\n";
  for (const auto& [name, entry] : registry.entries()) {
    text += fmt::format("  {:<{}}  {}\n", entry.label(), width, entry.help);
    std::vector<Row> settings;
    for (const Setting& s : entry.settings) {
      if (!printed.insert(name + "." + s.key).second) continue;
      const std::string choices =
          s.choices.empty() ? "" : fmt::format(" ({})", fmt::join(s.choices, ", "));
      settings.emplace_back(fmt::format("--set {}.{}={}", name, s.key, s.value), s.help + choices);
    }
    text += columns("    ", settings);
  }
  return text;
}

}  // namespace

std::string list_text() {
  std::set<std::string> printed;
  std::string text;
  const auto add = [&](const auto& registry) { text += section(registry, printed); };
  add(models());
  add(datasets());
  add(sparsifiers());
  add(selectors());
  add(exchanges());
  add(allreduces());
  add(reduces());
  add(broadcasts());
  add(setting_groups());
  return text;
}

}  // namespace tw
