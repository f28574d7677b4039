// Link descriptions, and the busy times of a port.

#include "comm/link/link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <numbers>

#include "comm/link/port.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_folder.h"

namespace tw {
namespace {

using test::error_text;

TEST(Topology, ParsesRateAndLatency) {
  const Topology link = parse_link("1Gbit,0.4ms", 4);
  EXPECT_DOUBLE_EQ(link.usual.bits_per_second, 1e9);
  EXPECT_DOUBLE_EQ(link.usual.latency, 4e-4);
  EXPECT_EQ(link.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(link.usual.seconds(125), 4e-4 + 1e-6);
  EXPECT_DOUBLE_EQ(parse_port("100Mbit,50us").bits_per_second, 1e8);
  EXPECT_DOUBLE_EQ(parse_port("56kbit,1s").bits_per_second, 56e3);
  EXPECT_DOUBLE_EQ(parse_port("2.5e3bit,0s").bits_per_second, 2500);
  EXPECT_DOUBLE_EQ(parse_port("2.5e3bit,50us").latency, 5e-5);
}

std::string topology_file(const test::TempFolder& folder, const std::string& json) {
  std::string path = (folder / "cluster.json").string();
  std::ofstream(path) << json;
  return path;
}

TEST(Topology, ReadsAFile) {
  const test::TempFolder folder;
  const Topology of = parse_link(topology_file(folder, R"({
      "link": "1Gbit,0.4ms", "ranks_per_node": 2,
      "nodes": {"3": {"out": "100Mbit,1ms"}, "4": {"link": "10Mbit,2ms"}},
      "racks": [{"first": 0, "last": 1, "link": "10Gbit,10us"}],
      "pairs": [{"from": 0, "to": 3, "link": "56kbit,50ms"}],
      "jitter": "0.1ms",
      "outages": [{"node": 3, "at": "11s", "for": "3s"}, {"node": 3, "at": "10s", "for": "2s"}],
      "slow": {"5": 1.5}, "slow_by_step": 0.2, "seed": 7})"));
  EXPECT_DOUBLE_EQ(of.usual.bits_per_second, 1e9);
  EXPECT_EQ(of.ranks_per_node, 2);
  const std::string plain = topology_file(folder, R"({"link": "1Gbit,0.4ms"})");
  EXPECT_EQ(parse_link(plain, 3).ranks_per_node, 3);
  EXPECT_EQ(of.node_of(7), 3);
  EXPECT_DOUBLE_EQ(of.ports(3).out.bits_per_second, 1e8);
  EXPECT_DOUBLE_EQ(of.ports(3).in.bits_per_second, 1e9);
  EXPECT_DOUBLE_EQ(of.ports(4).in.latency, 2e-3);
  EXPECT_DOUBLE_EQ(of.ports(0).out.bits_per_second, 1e9);
  ASSERT_NE(of.rack_of(1), nullptr);
  EXPECT_DOUBLE_EQ(of.rack_of(1)->in.bits_per_second, 1e10);
  EXPECT_EQ(of.rack_of(2), nullptr);
  EXPECT_DOUBLE_EQ(of.pairs.at({0, 3}).latency, 0.05);
  EXPECT_DOUBLE_EQ(of.jitter, 1e-4);
  ASSERT_EQ(of.outages.size(), 2u);
  EXPECT_DOUBLE_EQ(of.outages[0].end, 12);
  EXPECT_DOUBLE_EQ(of.outages[1].begin, 12);  // the second they share counts once
  EXPECT_DOUBLE_EQ(of.outages[1].end, 14);
  EXPECT_FALSE(of.uniform());
  // the ports of the nodes of the first ranks alone
  EXPECT_DOUBLE_EQ(of.cost(4).alpha, 4e-4 + 1e-4);
  EXPECT_NEAR(of.cost(4).beta, 32e-9, 1e-18);  // all ranks are in the rack
  // two nodes share an uplink of 10 Gbit/s
  EXPECT_NEAR(of.cost(6).beta, 32e-9, 1e-18);
  EXPECT_NEAR(of.cost(8).beta, 32 / 56e3, 1e-12);
  const PortSpec port{0, 1e9};  // of the eight nodes of a rack, two are in the run
  EXPECT_NEAR((Topology{.usual = port, .racks = {{port, port, 2, 9}}}.cost(4).beta), 64e-9, 1e-18);
  EXPECT_EQ(of.cost(2).alpha, 0);  // messages inside a node are free
  EXPECT_EQ(of.cost(2).beta, 0);
}

TEST(Topology, TheSlowestRankOfAStep) {
  Topology of{.usual = {.latency = 0, .bits_per_second = 1e9}};
  EXPECT_EQ(of.slowest(4), 1);
  of.slow[5] = 1.5;
  EXPECT_EQ(of.slowest(5), 1);
  EXPECT_EQ(of.slowest(6), 1.5);
  of.slow_by_step = 0.1;
  const double both = of.slowness(5, 7);
  of.slow.clear();
  EXPECT_DOUBLE_EQ(both, 1.5 * of.slowness(5, 7));
  // the mean of the largest of n exponentials is 1 + 1/2 + ... + 1/n of theirs
  EXPECT_NEAR(of.slowest(1), 1.1, 1e-6);
  EXPECT_NEAR(of.slowest(4), 1 + 0.1 * 25 / 12.0, 1e-6);
  EXPECT_NEAR(of.slowest(3000), 1 + 0.1 * (std::log(3000) + std::numbers::egamma), 2e-5);
  of.slow = {{1, 1.5}, {2, 1.5}};
  double drawn = 0;
  for (uint64_t step = 0; step < 1000; ++step)
    drawn += std::max({of.slowness(0, step), of.slowness(1, step), of.slowness(2, step)}) / 1000;
  EXPECT_NEAR(of.slowest(3), drawn, 5 * 1.5 * 0.1 * 1.2 / std::sqrt(1000.0));
  EXPECT_NE(of.slowness(0, 1), of.slowness(0, 2));
  EXPECT_NE(of.slowness(0, 1), of.slowness(1, 1));
}

TEST(Topology, AFileWithAMistakeIsAUserError) {
  const test::TempFolder folder;
  const auto text = [&](const std::string& json) {
    const std::string path = topology_file(folder, json);
    std::string error = error_text<UserError>([&] { parse_link(path); });
    if (const size_t at = error.find(path); at != std::string::npos)
      error.replace(at, path.size(), "FILE");
    return error;
  };
  EXPECT_EQ(text("{}"), "[link] FILE lacks the key link");
  std::string outages;
  for (int i = 0; i < 33; ++i)
    outages += fmt::format(R"({}{{"node": 1, "at": "{}s", "for": "1s"}})", i ? ", " : "", 10 * i);
  EXPECT_EQ(text(fmt::format(R"({{"link": "1Gbit,1ms", "outages": [{}]}})", outages)),
            "[link] FILE: node 1 has more than 32 outages");
  EXPECT_NE(text(R"({"link": "1Gbit"})").find("expected RATE,LATENCY"), std::string::npos);
  const std::string pair = R"({"from": 2, "to": 1, "link": "1Gbit,1ms"})",
                    needs = " needs either link or one or both of out and in",
                    time = "; expected a time of 0 to 1e+09 s, in us, ms or s";
  for (const auto& [key, error] : std::map<std::string, std::string>{
           {R"("node": {})", " has an unknown key node; nearest is \"nodes\""},
           {R"("slow": {"1": 0.5})", ": slow of rank 1 is 0.5; expected a number of 1 to 1e+09"},
           {R"("slow": {"1": 1e99})", ": slow of rank 1 is 1e+99; expected a number of 1 to 1e+09"},
           {R"("nodes": {"a": {}})", ": nodes has \"a\"; expected a whole number of 0 to 1048575"},
           {R"("nodes": {"03": {}})",
            ": nodes has \"03\"; expected a whole number of 0 to 1048575"},
           {R"("nodes": [])", ": nodes is not an object"},
           {R"("nodes": {"2": {}})", ": node 2" + needs},
           {R"("nodes": {"2": {"link": "1Gbit,1ms", "in": "1Gbit,1ms"}})", ": node 2" + needs},
           {R"("racks": [{"first": 0, "last": 1}])", ": rack 0" + needs},
           {R"("racks": [{"first": 2, "last": 1, "link": "1Gbit,1ms"}])",
            ": racks are ranges of nodes, ascending, without a common node"},
           {R"("pairs": [{"from": 2, "to": 2, "link": "1Gbit,1ms"}])",
            ": the pair from node 2 to 2 is one node"},
           {fmt::format(R"("pairs": [{}, {}])", pair, pair),
            ": the pair from node 2 to 1 is there twice"},
           {R"("outages": [{"node": 1, "at": "1s"}])", ": outage 0 lacks the key for"},
           {R"("outages": [{"node": 1, "at": "1s", "for": "0s"}])", ": outage 0 lasts no time"},
           {R"("outages": [{"node": 1, "at": "1e10s"}])", ": outage 0: at is \"1e10s\"" + time},
           {R"("jitter": 3)", ": jitter is \"3\"" + time}})
    EXPECT_EQ(text(fmt::format(R"({{"link": "1Gbit,1ms", {}}})", key)), "[link] FILE" + error);
  for (const char* wrong : {"0", "2.7", "4097", "-1", "\"2\""})
    EXPECT_EQ(text(fmt::format(R"({{"link": "1Gbit,1ms", "ranks_per_node": {}}})", wrong)),
              fmt::format("[link] FILE: ranks_per_node is {}; expected a whole number of 1 to 4096",
                          wrong));
  EXPECT_EQ(text(R"({"link": "1Gbit,1ms", "nodes": {"2": {"out": 3}}})"),
            "[link] link is \"3\"; expected RATE,LATENCY as in 1Gbit,0.4ms (in FILE: node 2: out)");
  EXPECT_NE(error_text<UserError>([] { parse_link("/no/such.json"); }).find("/no/such.json"),
            std::string::npos);
}

TEST(Topology, TheFastestLinkHasATimePerElement) {
  EXPECT_GT(parse_link("1e6Gbit,1e9s").cost(2).beta, 0);
}

TEST(Topology, ParseErrorsNameTheWrongPart) {
  const auto text = [](const char* link) {
    return error_text<UserError>([&] { parse_link(link); });
  };
  EXPECT_EQ(text("slow.JSON"),
            "[link] link is \"slow.JSON\"; expected RATE,LATENCY as in 1Gbit,0.4ms, or FILE.json");
  for (const char* link :
       {"1,1ms", "Gbit,1ms", "0Gbit,1ms", "-1Gbit,1ms", "1Gb,1ms", ",1ms", "nanGbit,1ms",
        "infGbit,1ms", "1 Gbit,1ms", "1e-310bit,1ms", "1e7Gbit,1ms"})
    EXPECT_TRUE(text(link).starts_with("[link] rate is \"")) << link << ": " << text(link);
  for (const char* link :
       {"1Gbit,", "1Gbit,1", "1Gbit,-1ms", "1Gbit,1min", "1Gbit,1ms,", "1Gbit,1e18s", "1Gbit,nans"})
    EXPECT_TRUE(text(link).starts_with("[link] latency is \"")) << link << ": " << text(link);
  EXPECT_EQ(error_text<UserError>([] { parse_link("1Gbit,1ms", 0); }),
            "[link] ranks-per-node is 0; expected at least 1");
}

TEST(Port, MessagesQueueInOrder) {
  Port port;
  EXPECT_EQ(port.book(1, 2), 1);
  EXPECT_EQ(port.book(1, 2), 3);
  EXPECT_EQ(port.book(10, 1), 10);
  EXPECT_EQ(port.book(10.5, 1), 11);
}

TEST(Port, AMessageFillsAGapThatIsLongEnough) {
  Port port;
  EXPECT_EQ(port.book(10, 1), 10);
  EXPECT_EQ(port.book(0, 2), 0);
  EXPECT_EQ(port.book(1, 9), 11);
  EXPECT_EQ(port.book(1, 8), 2);
  EXPECT_EQ(port.book(0, 1), 20);
}

TEST(Port, AFullPortForgetsOnlyTheOldestGaps) {
  Port port;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(port.book(2 * i, 1), 2 * i);
  EXPECT_EQ(port.book(397, 1), 397);  // between the last two
  EXPECT_GT(port.book(1, 1), 200);    // the first gap is no longer known
}

}  // namespace
}  // namespace tw
