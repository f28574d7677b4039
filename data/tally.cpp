#include "data/tally.h"

#include <fmt/core.h>

namespace tw {

void Tally::add(const std::string& kind, const std::string& what) {
  Group& group = groups_[kind];
  if (group.count++ == 0) group.first = what;
}

void Tally::add(const Tally& other) {
  for (const auto& [kind, more] : other.groups_) {
    Group& group = groups_[kind];
    if (group.count == 0) group.first = more.first;
    group.count += more.count;
  }
}

size_t Tally::count() const {
  size_t sum = 0;
  for (const auto& [kind, group] : groups_) sum += group.count;
  return sum;
}

std::string left_out_text(const Tally& by_reason) {
  std::string text;
  for (const auto& [reason, group] : by_reason.groups())
    text += fmt::format("{}{} {} ({}{})", text.empty() ? "" : ", ", group.count, reason,
                        group.first, group.count > 1 ? " first" : "");
  return text;
}

std::string skipped_text(const Tally& by_class) {
  std::string text;
  for (const auto& [name, group] : by_class.groups())
    text += group.count == 1 ? fmt::format("skipped 1 damaged image of {}: {}\n", name, group.first)
                             : fmt::format("skipped {} damaged images of {}, the first {}\n",
                                           group.count, name, group.first);
  return text;
}

}  // namespace tw
