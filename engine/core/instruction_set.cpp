#include "engine/core/instruction_set.h"

#include <fmt/ranges.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "engine/core/error.h"

namespace tw {

namespace {

InstructionSet best_set() {
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
  if (__builtin_cpu_supports("x86-64-v4")) return InstructionSet::v4;
  if (__builtin_cpu_supports("x86-64-v3")) return InstructionSet::v3;
#endif
  return InstructionSet::baseline;
}

InstructionSet chosen_set() {
  const InstructionSet best = best_set();
  const char* const wanted = std::getenv("THINWIRE_CPU");
  if (wanted == nullptr || *wanted == '\0') return best;
  std::vector<std::string> names;
  for (int set = 0; set <= static_cast<int>(best); ++set) {
    if (wanted == name(InstructionSet{set})) return InstructionSet{set};
    names.emplace_back(name(InstructionSet{set}));
  }
  fail("[cpu] THINWIRE_CPU is '{}'; this CPU has {}", wanted, fmt::join(names, ", "));
}

}  // namespace

std::string_view name([[maybe_unused]] InstructionSet set) {
#ifdef __x86_64__
  constexpr std::string_view names[] = {"x86-64", "x86-64-v3", "x86-64-v4"};
  return names[static_cast<int>(set)];
#else
  return "baseline";
#endif
}

InstructionSet instruction_set() {
  static const InstructionSet set = chosen_set();
  return set;
}

}  // namespace tw
