// Ranks at the start: an error of one is an error of all; another build or other options are
// refused, by name, on all ranks.
#include "apps/common/rank_utils.h"

#include <fstream>

#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"
#include "tests/support/ranks/ranks.h"

namespace tw::test {
namespace {

constexpr const char* kCommon = "--model lenet --batch-size 2 --max-steps 2 --threads-per-rank 1";

/// Two ranks run `program` with `flags`, a third runs `other` with `other_flags`.
Ended run_with_other(const TempFolder& folder, const std::string& flags, const std::string& other,
                     const std::string& other_flags) {
  const std::string common = fmt::format("{} --output-dir {}", kCommon, folder.path().string());
  return run_command(fmt::format("THINWIRE_CACHE={} {} -n 2 {} {} {} : -n 1 {} {} {}",
                                 TW_TEST_CACHE, TW_MPIRUN, TW_TRAIN, common, flags, other, common,
                                 other_flags));
}

class SameSetup : public testing::TestWithParam<std::array<const char*, 3>> {
 protected:
  void SetUp() override {
    if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  }
};

void expect_refused(const Ended& ended, const std::string& text) {
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_TRUE(ended.says("error: [setup] " + text)) << ended.output;
  const size_t first = ended.output.find("error: ");
  EXPECT_EQ(ended.output.find("error: ", first + 1), std::string::npos) << ended.output;
}

TEST_P(SameSetup, AnotherOptionOnOneRankIsNamed) {
  const TempFolder folder;
  const auto& [here, there, text] = GetParam();
  expect_refused(run_with_other(folder, here, TW_TRAIN, there), text);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

INSTANTIATE_TEST_SUITE_P(
    Options, SameSetup,
    testing::Values(
        std::array{"--sparsifier topk --density 0.01", "--sparsifier topk --density 0.02",
                   "density is 0.02 on rank 2; density is 0.01 on rank 0"},
        std::array{"--seed 1", "--seed 7", "seed is 7 on rank 2; seed is 1 on rank 0"},
        std::array{"", "--model mlp", "model is \"mlp\" on rank 2; model is \"lenet\" on rank 0"},
        std::array{"", "--set gtopk.rotate=true", "gtopk.rotate is \"true\" on rank 2"},
        std::array{"", "--measure-wait", "measure_wait is true on rank 2"},
        std::array{"--val-size 64", "--val-size 32", "val_size is 32 on rank 2"}));

/// The command of two ranks, that of a third, and what is refused.
class SameSetupOf : public testing::TestWithParam<std::array<std::string, 3>> {};

TEST_P(SameSetupOf, AnotherOptionOnOneRankIsNamed) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const auto& [here, there, text] = GetParam();
  expect_refused(
      run_command(fmt::format("{0} -n 2 {1}/{2} : -n 1 {1}/{3}", TW_MPIRUN, TW_BIN, here, there)),
      text);
}

const std::string kBench = "bench comm -b 4K -e 4K -n 1 --collective reduce ";
const std::string kAdvise = "advise --model lenet --batch-size 2 --rounds 1 ";
INSTANTIATE_TEST_SUITE_P(
    Programs, SameSetupOf,
    testing::Values(
        std::array<std::string, 3>{kBench, kBench + "--root 1",
                                   "root is 1 on rank 2; root is 0 on rank 0"},
        std::array<std::string, 3>{kBench, kBench + "--set root.collective=binomial_tree",
                                   "root.collective is \"binomial_tree\" on rank 2"},
        std::array<std::string, 3>{kBench, "bench step --steps 1", "subcommand is step on rank 2"},
        std::array<std::string, 3>{kAdvise, kAdvise + "--rounds 2",
                                   "rounds is 2 on rank 2; rounds is 1 on rank 0"},
        std::array<std::string, 3>{kAdvise, kAdvise + "--set wire.values=bf16",
                                   "wire.values is \"bf16\" on rank 2"}));

TEST(SameFiles, MayDiffer) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const TempFolder folder;
  const std::string start = fmt::format("{}/{}", TW_BIN, kBench);
  run_well(fmt::format("{} -n 1 {} : -n 1 {} --csv {}", TW_MPIRUN, start, start,
                       (folder / "here.csv").string()));
}

TEST(SameBuild, AnotherBuildOnOneRankIsNamed) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  const TempFolder folder, elsewhere;
  std::string program = text_of(TW_TRAIN);
  // the header of the note, and one bit of the hash behind it
  const std::string note("\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0", 16);
  const size_t at = program.find(note);
  if (at == std::string::npos) GTEST_SKIP() << "the linker writes no build id";
  program[at + note.size()] ^= 1;
  const std::filesystem::path other = elsewhere / "train";
  std::ofstream(other, std::ios::binary) << program;
  std::filesystem::permissions(other, std::filesystem::perms::owner_all);
  expect_refused(run_with_other(folder, "", other.string(), ""), "build is ");
}

/// What check_same_setup says on ranks with these lines; the same on all of them.
std::string said_of(const std::vector<std::vector<std::string>>& lines) {
  std::vector<std::string> said(lines.size());
  run_on_threads(static_cast<int>(lines.size()), [&](Communicator& comm) {
    const auto rank = static_cast<size_t>(comm.rank());
    try {
      check_same_setup(comm, lines[rank]);
    } catch (const UserError& error) {
      said[rank] = error.what();
    }
  });
  for (const std::string& one : said) EXPECT_EQ(one, said[0]);
  return said[0];
}

TEST(SameLines, TheErrorNamesTheFirstDifferentLineAndTheLowestRank) {
  EXPECT_EQ(said_of({{"a is 1"}}), "");
  EXPECT_EQ(said_of({{"a is 1", "b is 2"}, {"a is 1", "b is 2"}}), "");
  EXPECT_EQ(said_of({{"a is 1", "b is 2"}, {"a is 1", "b is 2"}, {"a is 1", "b is 3"}, {"x"}}),
            "[setup] x on rank 3; a is 1 on rank 0: all ranks must be the same");
  EXPECT_EQ(said_of({{"a is 1"}, {}}),
            "[setup] nothing more on rank 1; a is 1 on rank 0: all ranks must be the same");
  EXPECT_EQ(said_of({{}, {"a is 1"}, {"a is 1"}}),
            "[setup] a is 1 on rank 1; nothing more on rank 0: all ranks must be the same");
  EXPECT_EQ(
      said_of({{"class is caf\u00e9"}, {"class is cafe\u0301"}}),
      "[setup] class is cafe\u0301 on rank 1; class is caf\u00e9 on rank 0 (the same letters in "
      "another Unicode form, NFC or NFD): all ranks must be the same");
  std::vector<std::string> many;
  for (int i = 0; i < 1000; ++i) many.push_back(fmt::format("image {}", i));
  for (const size_t other : {0, 1, 499, 500, 998, 999}) {
    std::vector<std::string> changed = many;
    changed[other] = "another";
    changed.back() = "another";
    EXPECT_EQ(
        said_of({many, many, changed}),
        fmt::format("[setup] another on rank 2; image {} on rank 0: all ranks must be the same",
                    other));
  }
}

/// What all of three ranks throw when these do.
std::string thrown(const std::vector<int>& ranks) {
  std::string text;
  run_ranks(3, [&](Context&, Communicator& comm) {
    const std::string mine = error_text<UserError>([&] {
      run_collectively(comm, [&] {
        check(std::ranges::find(ranks, comm.rank()) == ranks.end(), "no file of {}", comm.rank());
      });
    });
    if (comm.rank() == 0) text = mine;
    barrier(comm);
    EXPECT_EQ(mine, text);
  });
  return text;
}

TEST(RunCollectively, AllRanksThrowTheErrorOfTheLowestRank) {
  EXPECT_EQ(thrown({0, 1, 2}), "no file of 0");
  EXPECT_EQ(thrown({2}), "no file of 2 (rank 2)");
  EXPECT_EQ(thrown({1, 2}), "no file of 1 (rank 1)");
}

}  // namespace
}  // namespace tw::test
