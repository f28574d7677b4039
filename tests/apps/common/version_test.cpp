// What results carry about the build: in --version, in tables, and in the files of a run.
#include "apps/common/version.h"

#include <nlohmann/json.hpp>

#include "engine/core/instruction_set.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using Json = nlohmann::json;

/// A line of /proc/cpuinfo, read by another program.
std::string name_of_cpu() {
  std::string text =
      run_command("sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1").output;
  while (text.ends_with('\n')) text.pop_back();
  return text.empty() ? "unknown model" : text;
}

TEST(Version, NamesCommitDateCompilerAndCpu) {
  const Ended ended = run_command(TW_BIN "/bench --version");
  EXPECT_TRUE(ended.says("\ndate ")) << ended.output;
  EXPECT_TRUE(ended.says("\nGCC ") || ended.says("\nClang ")) << ended.output;
  EXPECT_TRUE(ended.says("\nCPU " + name_of_cpu() + "\n")) << ended.output;
  const std::string date = kStamp.date;
  EXPECT_TRUE(date == "unknown" || (date.size() == 10 && date[4] == '-')) << date;
  EXPECT_TRUE(ended.says(fmt::format("\ncommit {}\n", kStamp.commit))) << ended.output;
}

TEST(InstructionSet, TheEnvironmentLimitsIt) {
  const auto version_with = [](const char* set) {
    return run_command(fmt::format("THINWIRE_CPU={} {}/bench --version", set, TW_BIN));
  };
  const std::string best(name(instruction_set()));
  EXPECT_TRUE(version_with(best.c_str()).says("\ninstruction set " + best + "\n"));
  const std::string least(name(InstructionSet::baseline));
  EXPECT_TRUE(version_with(least.c_str()).says("\ninstruction set " + least + "\n"));
  const Ended wrong = version_with("avx2");
  EXPECT_EQ(wrong.code, 2) << wrong.output;
  EXPECT_TRUE(wrong.says("error: [cpu] THINWIRE_CPU is 'avx2'; this CPU has " + least))
      << wrong.output;
}

TEST(InstructionSet, TheEnvironmentLimitsOneDnnWhateverOneDnnsOwnVariableSays) {
  const std::string_view least = name(InstructionSet::baseline);
  const Ended ended = run_command(fmt::format(
      "THINWIRE_CPU={} ONEDNN_MAX_CPU_ISA=ALL {} --model mlp --precision auto --dry-run", least,
      TW_TRAIN));
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("f32")) << ended.output;
  EXPECT_FALSE(ended.says("bf16")) << ended.output;
}

/// Runs of one set have equal bits; those of another may differ.
TEST(InstructionSet, ARunRepeatsItsBits) {
  const TempFolder folder;
  for (const InstructionSet set : {InstructionSet::baseline, instruction_set()}) {
    std::string hashes[2];
    for (std::string& hash : hashes) {
      const Ended ended = run_command(fmt::format(
          "THINWIRE_CPU={} {} --model lenet --sparsifier gaussiank --precision f32 --max-steps 2 "
          "--batch-size 4 --output-dir {} --name r{}",
          name(set), TW_TRAIN, folder.path().string(), &hash - hashes));
      ASSERT_EQ(ended.code, 0) << ended.output;
      hash = Json::parse(text_of(folder / fmt::format("r{}/summary.json", &hash - hashes)))
                 .value("weights_hash", "");
      std::filesystem::remove_all(folder / fmt::format("r{}", &hash - hashes));
    }
    EXPECT_NE(hashes[0], "");
    EXPECT_EQ(hashes[0], hashes[1]) << name(set);
  }
}

TEST(Version, TablesEndInIt) {
  EXPECT_EQ(provenance_names(), ",thinwire,commit,date,compiler,onednn,cpu,instruction_set");
  const std::string cells = provenance_cells();
  EXPECT_EQ(std::ranges::count(cells, ','), 7) << cells;
  EXPECT_TRUE(cells.starts_with(fmt::format(",{},{},", version(), kStamp.commit))) << cells;
  const TempFolder folder;
  std::string to;
  for (const char* command :
       {"bench select --d 4096 --iterations 1 --distribution gaussian",
        "bench comm --workers 2 --min-bytes 4096 --max-bytes 4096 --collective broadcast"}) {
    EXPECT_TRUE(to.empty() ||  // a table of another kind stays
                run_command(fmt::format("{}/{} --csv {}", TW_BIN, command, to)).code == 2);
    to = (folder / fmt::format("{}.csv", command[6])).string();
    run_well(fmt::format("{}/{} --csv {}", TW_BIN, command, to));
    std::istringstream lines(text_of(to));
    std::string head, row;
    std::getline(lines, head);
    EXPECT_TRUE(head.ends_with(provenance_names())) << head;
    while (std::getline(lines, row)) {
      EXPECT_TRUE(row.ends_with(cells)) << row;
      EXPECT_EQ(std::ranges::count(row, ','), std::ranges::count(head, ',')) << row;
    }
    EXPECT_EQ(row, "") << "no row";
  }
}

TEST(Version, RunsHaveItInTheirFiles) {
  const TempFolder folder;
  run_well(fmt::format(
      "THINWIRE_CACHE={} {} --model mlp --precision f32 --max-steps 1 --output-dir {} --name r",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string()));
  const Json config = Json::parse(text_of(folder / "r/config.json"))["run"];
  const Json summary = Json::parse(text_of(folder / "r/summary.json"))["build"];
  for (const auto& [name, value] : provenance()) {
    EXPECT_EQ(config.value(name, ""), value) << config;
    EXPECT_EQ(summary.value(name, ""), value) << summary;
  }
  EXPECT_EQ(summary.value("cpu", ""), name_of_cpu());
}

}  // namespace
}  // namespace tw::test
