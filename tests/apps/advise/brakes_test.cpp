// What holds the ranks of a topology back.
#include "apps/advise/brakes.h"

#include "tests/apps/advise/example.h"

namespace tw::test {
namespace {

// of four nodes of two ranks, node 1 is the slowest; nodes 2 and 3 become 1 and 2
TEST(Brakes, WithoutANodeLaterOnesTakeItsNumber) {
  const auto port = [](double mbit) { return PortSpec{1e-3, 1e6 * mbit}; };
  const Topology usual{.usual = port(1000), .ranks_per_node = 2};
  std::vector<std::pair<Topology, Topology>> cases(3, {usual, usual});  // with and without node 1
  cases[0].first.slow[7] = cases[0].second.slow[5] = 2;
  cases[1].first.pairs[{2, 3}] = cases[1].second.pairs[{1, 2}] = port(100);
  cases[2].first.racks = {{port(100), port(100), 0, 1}, {port(150), port(150), 2, 3}};
  cases[2].second.racks = {{port(100), port(100), 0, 0}, {port(150), port(150), 1, 2}};
  Costs costs = example_costs();
  for (auto& [with, without] : cases) {
    with.nodes[1] = {port(10), port(10)};
    costs.networks = network_costs(without, {6});
    const Comparison rest(example(), {costs}, {});
    const std::string text = fmt::format("; without node 1, on 6 ranks, {:.3g} ms dense",
                                         1e3 * rest.seconds(rest.best_dense(6), 6).mid);
    const std::string sentence = brakes(with, rest, 8).front();
    EXPECT_TRUE(sentence.starts_with("the port of node 1 holds 8 ranks back: ")) << sentence;
    EXPECT_NE(sentence.find(text), std::string::npos) << text << " is missing in " << sentence;
  }
}

}  // namespace
}  // namespace tw::test
