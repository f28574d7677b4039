// The program advise, called from the command line.
#include <algorithm>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

#include "sparsify/sparsifier.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

Ended advise(const std::string& arguments) {
  return run_command(fmt::format("{}/advise {}", TW_BIN, arguments));
}

constexpr const char* kSimulated =
    "--simulate --alpha 0.000436 --beta 3.6e-8 --compute 0.5 --select 0.01 --parameters 26214400 ";

TEST(Advise, PredictsFromGivenCosts) {
  const Ended ended = advise(std::string(kSimulated) + "--ranks 4,8,65536");
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* text :
       {"4 ranks; the best dense exchange: dense recursive_halving bf16", "gtopk", "65536 ranks",
        "times dense", "top-1: not measured", "break-even Gbit/s",
        "gaussiank, hardthreshold, oktopk, sidco: prediction for 26214 entries",
        "8 ranks: use --sparsifier", "65536 ranks: stay dense", "not measured: gtopk"})
    EXPECT_TRUE(ended.says(text)) << text << " is missing in\n" << ended.output;
  EXPECT_FALSE(ended.says("overlap")) << "without a profile of backward\n" << ended.output;
}

/// Seconds of an iteration of 8 ranks at the link's bandwidth, by sparsifier and collective.
std::map<std::string, double> iterations(const std::string& arguments) {
  const TempFolder folder;
  const std::string file = (folder / "advice.csv").string();
  const Ended ended = advise(arguments + fmt::format(" --ranks 8 --csv {}", file));
  EXPECT_EQ(ended.code, 0) << ended.output;
  std::map<std::string, double> seconds;
  for (const auto& row : table_rows(file))
    if (row.at("at_link") == "1")
      seconds[row.at("sparsifier") + " " + row.at("collective")] =
          std::stod(row.at("iteration_seconds"));
  return seconds;
}

TEST(Advise, TakesTheNetworkOfAFolder) {
  const TempFolder folder;
  write_image_folder(folder / "small", 3, 2, 1);
  const std::string small = "--data-dir " + (folder / "small").string();
  const auto first_line = [&](const std::string& more) {
    const Ended ended =
        advise(fmt::format("--simulate --link 1Gbit,0.4ms --compute 0.1 --select 0 --ranks 4 "
                           "{}",
                           more));
    EXPECT_EQ(ended.code, 0) << ended.output;
    return ended.output.substr(0, ended.output.find('\n'));
  };
  EXPECT_EQ(first_line(small), "resnet20 with 3 classes and images of 32 x 32");
  EXPECT_EQ(first_line(small + " --model resnet18"),
            "resnet18 with 3 classes and images of 224 x 224");
  EXPECT_EQ(first_line(small + " --image-size 48 --classes 7"),
            "resnet20 with 7 classes and images of 48 x 48");
  // as train: a given size below that of the images decides on the network
  for (const char* name : {"a", "b"}) {
    std::filesystem::create_directories(folder / "large" / name);
    write_bytes(folder / "large" / name / "0.jpg", noise_jpeg(1, 200, 200));
  }
  const std::string large = "--data-dir " + (folder / "large").string();
  EXPECT_EQ(first_line(large), "resnet18 with 2 classes and images of 224 x 224");
  EXPECT_EQ(first_line(large + " --image-size 32"),
            "resnet20 with 2 classes and images of 32 x 32");
}

TEST(Advise, PredictsOnceForANumberOfRanksThatIsGivenTwice) {
  const Ended ended = advise(std::string(kSimulated) + "--ranks 2,1,2");
  EXPECT_EQ(ended.code, 0) << ended.output;
  std::istringstream lines(ended.output);
  std::vector<std::string> heads;
  for (std::string line; std::getline(lines, line);)
    if (const size_t end = line.find("; the best dense exchange"); end != std::string::npos)
      heads.push_back(line.substr(0, end));
  EXPECT_EQ(heads, (std::vector<std::string>{"1 rank", "2 ranks"})) << ended.output;
}

TEST(Advise, ChargesTheUpdateToEverySparsifierAndTheSelectionToThoseThatSelect) {
  const auto plain = iterations(kSimulated),
             more = iterations(std::string(kSimulated) + "--update 0.25");
  EXPECT_GT(plain.size(), sparsifiers().entries().size());
  for (const auto& [label, seconds] : plain)
    EXPECT_NEAR(more.at(label) - seconds, 0.25, 1e-4) << label;
  const auto selects = iterations(
      "--simulate --alpha 0.000436 --beta 3.6e-8 --compute 0.5 --select 0.26 --parameters "
      "26214400");
  EXPECT_NEAR(selects.at("topk ") - plain.at("topk "), 0.25, 1e-4);
  EXPECT_NEAR(selects.at("dense ring"), plain.at("dense ring"), 1e-4);
}

TEST(Advise, SaysWhichCostsASimulationLeavesOut) {
  const std::string given = std::string(kSimulated) + "--ranks 4 ";
  EXPECT_TRUE(advise(given).says("cost of 0: --update --gamma --merge\n"));
  EXPECT_TRUE(advise(given + "--gamma 1e-10 --merge 1e-9").says("cost of 0: --update\n"));
  EXPECT_FALSE(advise(given + "--gamma 1e-10 --merge 1e-9 --update 0.1").says("cost of 0"));
}

TEST(Advise, LeavesOutHierarchicalIfTheSumInsideANodeIsNotKnown) {
  const std::string eight = std::string(kSimulated) + "--ranks 8 ";
  const Ended four = advise(eight), one = advise(eight + "--set hierarchical.node=1");
  EXPECT_TRUE(four.says("hierarchical is left out: only 4 or more ranks measure")) << four.output;
  EXPECT_FALSE(four.says("\nhierarchical  ")) << four.output;
  EXPECT_FALSE(one.says("left out")) << one.output;
  // 2 leaders gather 2 x 1,000 entries of 8 bytes: 0.4 + 0.064 ms. Nodes of the link take no more;
  // in racks, a ring and two broadcasts: 4 messages, and a million values of 4 bytes twice. The
  // uplinks' share of 500 Mbit/s doubles the 0.064 ms.
  const TempFolder folder;
  const std::string file = (folder / "racks.json").string();
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "racks":
      [{"first": 0, "last": 1, "link": "1Gbit,0.4ms"},
       {"first": 2, "last": 3, "link": "1Gbit,0.4ms"}]})";
  const std::string given =
      "--simulate --compute 0.1 --select 0.001 --parameters 1000000 --ranks 4 --link ";
  for (const auto& [link, seconds] :
       {std::pair("1Gbit,0.4ms --ranks-per-node 2", "0.1015"), {file.c_str(), "0.1671"}}) {
    const Ended ended = advise(given + link);
    EXPECT_TRUE(
        ended.says(fmt::format("\non 4 ranks an iteration takes {} s with hierarchical "
                               "(hierarchical.node=2), ",
                               seconds)))
        << ended.output;
    EXPECT_EQ(ended.says("2 ranks share a node's port"), link != file.c_str()) << ended.output;
  }
  EXPECT_TRUE(one.says("\nhierarchical  ")) << one.output;
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "racks": [{"first": 0, "last": 1, "link":
      "1Gbit,0.4ms"}, {"first": 2, "last": 5, "link": "1Gbit,0.4ms"}]})";
  EXPECT_TRUE(advise(given + file).says("left out: racks are of other sizes, and only 4 or more"));
}

// sums inside two racks of four on 5 ranks use no ways between racks, and no node that has no rank
TEST(Advise, SumsInsideRacksUseTheirOwnLinks) {
  const TempFolder folder;
  const std::string file = (folder / "racks.json").string();
  const auto seconds = [&](const std::string& more) {
    std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "racks": [{"first": 0, "last": 3, "out":
        "1Gbit,0.4ms"}, {"first": 4, "last": 7, "out": "1Gbit,0.4ms"}])" +
                               more + "}";
    const Ended ended = advise("--simulate --compute 1 --select 0 --ranks 5 --link " + file);
    return ended.output.substr(ended.output.find("\non 5 ranks an iteration takes "), 36);
  };
  const std::string usual = seconds("");
  EXPECT_EQ(seconds(R"(, "pairs": [{"from": 0, "to": 5, "link": "1Mbit,50ms"}])"), usual);
  EXPECT_EQ(seconds(R"(, "nodes": {"7": {"link": "1Mbit,50ms"}})"), usual);
  EXPECT_NE(seconds(R"(, "pairs": [{"from": 0, "to": 3, "link": "1Mbit,50ms"}])"), usual);
}

TEST(Advise, NeedsTheRanksOfANode) {
  expect_end(fmt::format("{}/advise {} --ranks 8 --set hierarchical.node=0", TW_BIN, kSimulated), 2,
             "[options] hierarchical.node is 0; expected the ranks on each machine");
}

TEST(Advise, BreaksProseOfATerminalBetweenWords) {
  const std::string command = fmt::format("{}/advise {} --ranks 8", TW_BIN, kSimulated);
  const Ended ended = run_well("script -qec 'stty cols 60; " + command + "' /dev/null </dev/null");
  EXPECT_TRUE(ended.says("hierarchical is left out: only 4 or more ranks measure the\r\n  sum"))
      << ended.output;
  EXPECT_TRUE(ended.says(" as the\r\n  best dense exchange (dense ")) << ended.output;
}

TEST(Advise, WritesATableOfBandwidths) {
  const TempFolder folder;
  const std::string file = (folder / "advice.csv").string();
  const Ended ended = advise(kSimulated + fmt::format("--ranks 4,8 --csv {}", file));
  EXPECT_EQ(ended.code, 0) << ended.output;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(
      line,
      "sparsifier,collective,local_steps,ranks,at_link,gbit_per_s,iteration_seconds,iteration_low,"
      "iteration_high,exchange_seconds,efficiency,speedup,speedup_low,speedup_high,"
      "break_even_gbit,break_even_low,break_even_high,top1_points,recommended,busy,thinwire,commit,"
      "date,compiler,onednn,cpu,instruction_set");
  size_t at_link = 0, others = 0;
  while (std::getline(in, line)) {
    EXPECT_EQ(std::ranges::count(line, ','), 26) << line;
    at_link += line.starts_with("dense,ring,1,8,1,0.888889,2.15761") &&  // 0.5 s and the ring
               line.find(",--sparsifier topk,0,") != std::string::npos;
    others += line.starts_with("dense,ring,1,8,0,") && line.find(",,0,") != std::string::npos;
  }
  EXPECT_EQ(at_link, 1u);
  EXPECT_EQ(others, 41u);
}

TEST(Advise, MeasuresRanksOnAnEmulatedLink) {
  const Ended ended = advise(
      "--model mlp --batch-size 4 --workers 2 --link 1Gbit,0.4ms --rounds 2 --precision f32");
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* text : {"2 ranks: ", "--ranks 4,8,16", "\nexchange            ms per",
                           "medians of 2 rounds", "least to most"})
    EXPECT_TRUE(ended.says(text)) << text << " is missing in\n" << ended.output;
  EXPECT_FALSE(ended.says("\n4 ranks")) << ended.output;
}

// the best exchange of dense SGD on 4 ranks is recursive halving with bf16: 4 alpha and 3/4 of a
// million values of 2 bytes each way; topk gathers 3 x 1,000 entries of 8 bytes in 2 messages
TEST(Advise, SaysWhatHoldsTheRanksOfATopologyBack) {
  const TempFolder folder;
  const std::string file = (folder / "cluster.json").string();
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "nodes": {"3": {"link": "100Mbit,0.4ms"}},
                             "slow": {"2": 1.5}})";
  const Ended ended = advise(
      "--simulate --compute 0.1 --select 0.001 --parameters 1000000 --ranks 2,4 --link " + file);
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* text :
       {"the port of node 3 holds 4 ranks back: an iteration takes 392 ms dense and 154 ms by",
        "with the usual one in its place 176 ms dense and 152 ms by",
        "without node 3, on 3 ranks, 173 ms dense", "rank 2 holds 4 ranks back",
        "too many seconds where few messages use it, too few where they wait",
        "with the usual one in its place 342 ms dense and 104 ms"})
    EXPECT_TRUE(ended.says(text)) << text << " is missing in\n" << ended.output;
  EXPECT_FALSE(ended.says("holds 2 ranks back")) << ended.output;
  // of two that are alike, both
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "slow": {"2": 1.5, "1": 1.5},
      "nodes": {"3": {"link": "100Mbit,0.4ms"}, "2": {"out": "100Mbit,0.4ms"}},
      "racks": [{"first": 0, "last": 1, "link": "100Mbit,0.4ms"},
                {"first": 2, "last": 3, "link": "100Mbit,0.4ms"}]})";
  const Ended pairs = advise(
      "--simulate --compute 0.1 --select 0.001 --parameters 1000000 --ranks 4 --link " + file);
  for (const char* text :
       {"\nthe uplinks of nodes 0 to 1, 2 to 3 hold 4 ranks back", "\nranks 1, 2 hold 4 ranks back",
        "\nthen the ports of nodes 2, 3 hold 4 ranks back: an iteration takes "})
    EXPECT_TRUE(pairs.says(text)) << text << " is missing in\n" << pairs.output;
  const Ended measured = advise("--model mlp --workers 2 --rounds 1 --ranks 2 --link " + file);
  EXPECT_EQ(measured.code, 0) << measured.output;
  const Ended both = advise(std::string(kSimulated) + "--ranks 4 --link " + file);
  EXPECT_EQ(both.code, 2);
  EXPECT_TRUE(both.says("alpha and beta are for links and ranks that are alike")) << both.output;
  // of some that hide each other, all: a rack of all nodes hides nothing
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "jitter": "100ms", "slow_by_step": 1.0,
      "nodes": {"3": {"link": "50Mbit,0.4ms"}, "2": {"out": "50.7Mbit,0.4ms"}},
      "pairs": [{"from": 0, "to": 1, "link": "50Mbit,0.4ms"}],
      "racks": [{"first": 0, "last": 3, "link": "1Mbit,0.4ms"}]})";
  const Ended hidden = advise(
      "--simulate --compute 0.1 --select 0.001 --parameters 1000000 --ranks 1,4 --link " + file);
  for (const char* text :
       {"the port of node 3 and the way from node 0 to 1 and the port of node 2 hold 4 ranks",
        "\nthen jitter of 100 ms holds 4 ranks back", "\nslow_by_step 1 holds 4 ranks back",
        "\nslow_by_step 1 holds 1 rank back"})
    EXPECT_TRUE(hidden.says(text)) << text << " is missing in\n" << hidden.output;
}

// a message of 1 MiB would take hours
TEST(Advise, DoesNotMeasureLinksOfAFile) {
  const TempFolder folder;
  const std::string file = (folder / "slow.json").string();
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "nodes": {"1": {"in": "1kbit,5ms"}}})";
  const Ended ended = run_command(fmt::format(
      "timeout 300 {}/advise --model mlp --workers 2 --rounds 1 --link {}", TW_BIN, file));
  EXPECT_TRUE(
      ended.says("\nlink of 2 ranks 0.005 s per message, 1e-06 Gbit/s, the slowest in its "))
      << ended.output;
}

TEST(Advise, NeedsNoBandwidthWhereOneNodeHasAllRanks) {
  const TempFolder folder;
  const std::string file = (folder / "node.json").string();
  std::ofstream(file) << R"({"link": "1Gbit,0.4ms", "ranks_per_node": 2, "slow": {"0": 2}})";
  const Ended ended = run_command(fmt::format(
      "timeout 60 {}/advise --simulate --compute 1 --select 0 --ranks 2 --link {}", TW_BIN, file));
  EXPECT_TRUE(ended.says("\nlink of 2 ranks inside a node, where messages")) << ended.output;
}

TEST(Advise, SaysThatRanksShareCores) {
  const std::string given =
      "--model mlp --batch-size 1 --link 1Gbit,0.4ms --rounds 1 --ranks 2 --precision f32";
  const int64_t more = std::thread::hardware_concurrency() + 1;
  const Ended crowded = advise(fmt::format("{} --workers {}", given, more));
  EXPECT_TRUE(crowded.says(fmt::format("{} ranks x 1 thread share", more))) << crowded.output;
  EXPECT_TRUE(crowded.says("overlap does not slow backward down")) << crowded.output;
  EXPECT_FALSE(advise(given + " --threads-per-rank 1").says("share"));
}

TEST(Advise, TakesTheComputeOfAnotherMachineFromAFile) {
  const TempFolder folder;
  const std::string file = (folder / "profile.csv").string();
  run_well(
      fmt::format("{}/bench step --model mlp --batch-size 2 --steps 1 --csv {}", TW_BIN, file));
  const std::string given = fmt::format(
      "--simulate --link 1Gbit,1ms --select 0 --ranks 4 --compute-profile {} --model ", file);
  const Ended ended = advise(given + "mlp");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("overlap")) << ended.output;
  EXPECT_EQ(advise(given + "lenet").code, 2) << "another network";
}

TEST(Advise, ReadsATableOfAccuracies) {
  const TempFolder folder;
  const std::string file = (folder / "accuracy.csv").string();
  std::ofstream(file) << "sparsifier,options,model,dataset,ranks,batch_size,density,epochs,seeds,"
                         "top1,dense_top1,commit\n"
                         "topk,,resnet20,cifar10,4,32,0.001,10,1;2,0.83,0.86,abc\n";
  const std::string given =
      "--simulate --link 100Mbit,1ms --select 0.001 --compute 0.1 --ranks 4 --accuracy " + file;
  const Ended ended = advise(given);
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says(" -3.0\n")) << ended.output;
  EXPECT_TRUE(
      ended.says("equally many epochs: cifar10, 4 ranks, 10 epochs, 2 seeds\n  ?: not measured\n"))
      << ended.output;
  EXPECT_FALSE(ended.says("use --sparsifier topk")) << ended.output;
  EXPECT_TRUE(advise(given + " --max-loss 4").says("use --sparsifier topk"));
  EXPECT_FALSE(advise(given + " --classes 100").says("equally many epochs")) << "not CIFAR-10";
  EXPECT_FALSE(advise(given + " --image-size 8").says("equally many epochs")) << "not CIFAR-10";
  EXPECT_TRUE(advise(given + " --set gaussiank.refine=histogram").says("equally many epochs"))
      << "a setting of another sparsifier";
  EXPECT_FALSE(advise(given + " --set wire.values=bf16").says("equally many epochs"))
      << "measured at the default settings";
  std::ofstream(file, std::ios::app)
      << "gtopk,--set gtopk.put_back=conserve --set gtopk.rotate=true,resnet20,cifar10,4,32,0.001,"
         "9,1,0.8,0.86,abc\n"
         "dense,--local-steps 4,resnet20,cifar10,4,32,0.001,8,1,0.85,0.86,abc\n";
  const Ended changed = advise(given + " --set gtopk.rotate=true --set gtopk.put_back=conserve");
  for (const char* text :
       {" -6.0\n", "4 ranks, 10 epochs, 2 seeds (topk)\n", "4 ranks, 9 epochs, 1 seed (gtopk)\n"})
    EXPECT_TRUE(changed.says(text)) << text << " is missing in\n" << changed.output;
  EXPECT_FALSE(advise(given + " --set gtopk.rotate=true").says("9 epochs"));
  EXPECT_TRUE(advise(given + " --local-steps 4").says(" -1.0\n"));
  EXPECT_TRUE(advise(given + " --local-steps 4").says("4 ranks, 8 epochs, 1 seed\n"));
}

// 450 images an epoch and 4 x 32 a step: 3.515625 iterations an epoch. For 1e-6 s an element, an
// iteration of topk takes 0.1 s and 3 x 270 x 2 elements, 0.10162 s; one of dense SGD 0.1 s and 1.5
// x 269,722 elements, 0.504583 s.
TEST(Advise, PredictsTheSecondsToAnAccuracy) {
  const TempFolder folder;
  const std::string file = (folder / "accuracy.csv").string();
  std::ofstream(file) << "sparsifier,options,model,dataset,ranks,batch_size,density,epochs,seeds,"
                         "top1,dense_top1,commit,images,curve\n"
                         "topk,,resnet20,cifar10,4,32,0.001,2,1,0.7,0.8,abc,450,0.5;0.7\n"
                         "topk,,resnet20,cifar10,4,32,0.001,4,1,0.8,0.8,abc,450,0.4;0.5;0.7;0.8\n"
                         "dense,,resnet20,cifar10,4,32,0.001,2,1,0.8,0.8,abc,450,0.6;0.8\n";
  const std::string given =
      "--simulate --alpha 1e-9 --beta 1e-6 --select 0 --compute 0.1 --ranks 4,8 --accuracy " + file;
  const Ended ended = advise(given + " --to-accuracy 0.6");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("\n4 ranks, to a validation top-1 of 0.6\n")) << ended.output;
  // 1.5 epochs of the shorter training
  EXPECT_TRUE(
      ended.says("\ntopk               0.536              1.5       cifar10, 4 ranks, 2 epochs, 1 "
                 "seed\n"))
      << ended.output;
  EXPECT_TRUE(ended.says("\ndense              1.77 ")) << ended.output;
  EXPECT_TRUE(ended.says("topk takes 0.30 of the seconds of dense")) << ended.output;
  EXPECT_TRUE(ended.says("a step of the trainings has 128 images, here 256")) << ended.output;
  // on 8 ranks half as many iterations, of 0.1 s and 7 x 270 x 2 elements
  EXPECT_TRUE(ended.says("\ntopk               0.274              1.5 ")) << ended.output;
  EXPECT_TRUE(ended.says("\nepochs of a density warm-up of the trainings count as those after"));
  EXPECT_FALSE(ended.says("no training has reached it: ")) << ended.output;
  EXPECT_TRUE(
      advise(given + " --to-accuracy 0.6 --epochs 4").says("2.5       cifar10, 4 ranks, 4 epochs"));
  const Ended never = advise(given + " --to-accuracy 0.9");
  for (const char* text : {"no training has reached it: topk, dense\n", "options is known (--acc"})
    EXPECT_TRUE(never.says(text)) << text << " is missing in\n" << never.output;
}

// ResNet-20 on 32 ranks of the 1 Gbit/s of Shi et al.: 0.436 ms a message, 3.6e-8 s an element.
// Seconds by recursive halving, which takes 10 messages and 1.9375 of n elements for a sum of n:
//   dense in bf16  10 a + 1.9375 b 269,722 / 2                                 0.013767
//   powersgd       20 a + 1.9375 b (25,620 + 1,386), factors and vectors       0.010604
//   dgc            30 a + 1.9375 b 1,386 + 31 * 279 * 2 b, in two buckets      0.013799
// and by a ring, 62 messages instead of 10: 0.036439, 0.055948, 0.059103.
TEST(Advise, PricesAllDenseSumsAlike) {
  const std::string given =
      "--simulate --select 0 --model resnet20 --alpha 0.000436 --beta 3.6e-8 --compute 0.139035 "
      "--ranks 32";
  const Ended best = advise(given);
  for (const char* row :
       {"dense bf16         153                1.00", "powersgd           150                1.02",
        "dgc                153                1.00"})
    EXPECT_TRUE(best.says(row)) << row << " is missing in\n" << best.output;
  const Ended ring = advise(given + " --set allreduce.collective=ring");
  for (const char* row :
       {"dense bf16         175                1.00", "powersgd           195                0.90",
        "dgc                198                0.89"})
    EXPECT_TRUE(ring.says(row)) << row << " is missing in\n" << ring.output;
}

TEST(Advise, SettingsOfOtherMethodsKeepTheAccuracies) {
  const std::string given =
      "--simulate --select 0 --compute 0.1 --link 100Mbit,1ms --ranks 4 --local-steps 4 --density "
      "0.01";
  const std::string rarely =
      "--simulate --select 0 --compute 0.1 --link 100Mbit,1ms --ranks 4 --local-steps 16";
  const std::string sync = "--simulate --select 0 --compute 0.1 --link 100Mbit,1ms --ranks 4";
  const auto accuracy = [](const std::string& arguments, const std::string& row) {
    std::istringstream lines(advise(arguments).output);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(row + "  ")) return line.substr(line.find_last_of(' ') + 1);
    return std::string("no row");
  };
  for (const char* settings :
       {"", " --set allreduce.collective=mst --set wire.values=int8", " --ranks-per-node 2"}) {
    EXPECT_EQ(accuracy(sync + settings, "powersgd"), "-0.7") << settings;
    EXPECT_EQ(accuracy(sync + settings, "scalecom"), "-6.2") << settings;
    EXPECT_EQ(accuracy(given + settings, "dense H=4"), "-0.6") << settings;
    EXPECT_EQ(accuracy(given + settings, "dense bf16 H=4"), "-0.9") << settings;
    // trained in f32
    EXPECT_EQ(accuracy(rarely + settings, "dense H=16"), "-2.5") << settings;
    EXPECT_EQ(accuracy(rarely + settings, "dense bf16 H=16"), "?") << settings;
  }
  EXPECT_EQ(accuracy(sync + " --set allreduce.values=bf16", "powersgd bf16"), "?");
  EXPECT_EQ(accuracy(sync + " --set allreduce.values=bf16", "dgc bf16"), "?") << "small tensors";
}

TEST(Advise, UserErrorsAreOneLineAndExitCode2) {
  for (const char* arguments :
       {"--simulate",
        "--simulate --compute 1",
        "--simulate --compute 1 --select 0 --alpha 1e-4",
        "--simulate --compute 1 --select 0 --link 1Gbit",
        "--simulate --compute 1 --link 1Gbit,1ms",
        "--rounds 0",
        "--link 1Gbit",
        "--compute-profile none.csv --link 1Gbit,1ms",
        "--accuracy none.csv --link 1Gbit,1ms",
        "--compute 1 --compute-profile none.csv",
        "--ranks 0",
        "--ranks 65537",
        "--modle x",
        "--model resnet21",
        "--parameters 10",
        "--link 1Gbit,1ms --to-accuracy 0",
        "--link 1Gbit,1ms --to-accuracy 1.5",
        "--select 1",
        "--update 1 --link 1Gbit,1ms",
        "--simulate --compute 1 --select 0 --link 1Gbit,1ms --gamma 1e-9",
        "--simulate --compute 1 --select 0 --link 1Gbit,1ms --merge 1e-9",
        "--density 0",
        "--compute 1 --adapt-density topk --link 1Gbit,1ms",
        "--link 1Gbit,1ms --adapt-density dense",
        "--link 1Gbit,1ms --adapt-density hierarchical",
        "--link 1Gbit,1ms --adapt-density topk --local-steps 2",
        "--link 1Gbit,1ms --bucket-mib 0",
        "--simulate --compute 1 --select 0 --link 1Gbit,1ms --workers 2",
        "--simulate --compute 1 --select 0 --link 1Gbit,1ms --csv /dev/null/x",
        "--simulate --compute 1 --select 0 --link 1Gbit,1ms --set hardthreshold.lambda=0",
        "--link 1Gbit,1ms --set allreduce.collective=vendor",
        "extra"}) {
    const Ended ended = advise(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << "\n" << ended.output;
    EXPECT_TRUE(ended.says("error: ")) << arguments << "\n" << ended.output;
    EXPECT_TRUE(ended.output.find("error: ") + 1 > 0 &&
                ended.output.find('\n', ended.output.find("error: ")) + 1 == ended.output.size())
        << arguments << "\n"
        << ended.output;
  }
}

}  // namespace
}  // namespace tw::test
