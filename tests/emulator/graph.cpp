#include "tests/emulator/graph.h"

#include <algorithm>

namespace tw::emulator {

bool Recording::joined(const std::vector<size_t>& last) const {
  std::vector<bool> reached(nodes.size());
  std::vector<size_t> open = last;
  while (!open.empty()) {
    const size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::ranges::find(reached, false) == reached.end();
}

void run(const GraphNodes& nodes, const std::function<bool()>& late) {
  std::vector<bool> done(nodes.size());
  const auto ready = [&](size_t i) {
    return !done[i] && std::ranges::all_of(nodes[i].after, [&](size_t a) { return done[a]; });
  };
  for (size_t count = 0; count < nodes.size(); ++count) {
    size_t next = nodes.size();
    const bool first = late();  // lane 0
    for (size_t i = 0; i < nodes.size(); ++i)
      if (ready(i) && (next == nodes.size() ||
                       ((nodes[i].lane == 0) == first && (nodes[next].lane == 0) != first)))
        next = i;
    nodes[next].work();
    done[next] = true;
  }
}

GraphHooks& graph_hooks() {
  static GraphHooks hooks;
  return hooks;
}

}  // namespace tw::emulator
