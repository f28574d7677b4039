// Names and paths with any characters: a run works, or ends with one line and exit code 2, and
// writes nothing outside of its folder.
#include <fstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kShort =
    "--model lenet --batch-size 2 --val-size 64 --eval-every never --threads-per-rank 1 "
    "--checkpoint-steps 1";

Ended train(const fs::path& folder, const std::string& arguments) {
  return run_command(fmt::format("cd {} && THINWIRE_CACHE={} {} {} --output-dir runs {}",
                                 folder.string(), TW_TEST_CACHE, TW_TRAIN, kShort, arguments));
}

/// The names in a folder.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder))
    names.push_back(entry.path().filename().string());
  return names;
}

class RefusedName : public testing::TestWithParam<std::string> {};

TEST_P(RefusedName, IsOneLineAndExitCode2) {
  const TempFolder folder;
  const Ended ended = train(folder.path(), "--max-steps 1 " + GetParam());
  EXPECT_EQ(ended.code, 2) << ended.output;
  const size_t at = ended.output.find("error: ");
  ASSERT_NE(at, std::string::npos) << ended.output;
  EXPECT_EQ(ended.output.find('\n', at), ended.output.size() - 1) << ended.output;
  for (const std::string& name : names_in(folder.path())) EXPECT_EQ(name, "runs");
}

const std::string kLong(4096, 'n');

INSTANTIATE_TEST_SUITE_P(Names, RefusedName,
                         testing::Values("--name ..", "--name ../outside", "--name a/b",
                                         "--name /outside", "--name \"$(printf 'a\\nb')\"",
                                         "--name \"$(printf 'a\\033[2Jb')\"",
                                         "--name \"$(printf 'a\\377')\"", "--name " + kLong,
                                         "--output-dir " + kLong, "--output-dir /dev/null/x",
                                         "--resume " + kLong, "--resume \"$(printf 'no\\nsuch')\"",
                                         "--config " + kLong, "--config \"$(printf 'no\\nsuch')\"",
                                         "--config .", "--config /dev/zero", "--data-dir " + kLong,
                                         "--pretrained " + kLong, "--model " + kLong));

TEST(Names, OfAnyLanguageWork) {
  const TempFolder folder;
  const Ended ended = train(folder.path(), "--max-steps 1 --name 'Übung 日本 -rf *'");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(fs::exists(folder.path() / "runs" / "Übung 日本 -rf *" / "summary.json"));
  EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"runs"});
}

TEST(SymbolicLinks, InARunFolderLeaveTheirTargetsAsTheyAre) {
  const TempFolder folder;
  const fs::path run = folder.path() / "runs/run", outside = folder.path() / "outside";
  ASSERT_EQ(train(folder.path(), "--max-steps 1 --name run").code, 0);
  fs::create_directories(outside / "step-00000009");
  std::ofstream(outside / "table") << "kept\n";
  std::ofstream(outside / "step-00000009/model.safetensors") << "kept\n";
  // a file of the run, and a half-written checkpoint
  fs::remove(run / "summary.json");
  fs::create_symlink(outside / "table", run / "summary.json");
  fs::create_directory_symlink(outside, run / "checkpoints/.step-00000002.part");
  const Ended ended = train(folder.path(), "--max-steps 3 --name run --resume auto");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(text_of(outside / "table"), "kept\n");
  EXPECT_EQ(text_of(outside / "step-00000009/model.safetensors"), "kept\n");
  EXPECT_FALSE(fs::is_symlink(run / "summary.json"));
  EXPECT_TRUE(fs::exists(run / "checkpoints/step-00000003/model.safetensors"));
}

TEST(SymbolicLinks, AsARunFolderAreNotReusedWithoutBeingAsked) {
  const TempFolder folder;
  fs::create_directories(folder.path() / "runs");
  fs::create_directories(folder.path() / "outside");
  fs::create_directory_symlink(folder.path() / "outside", folder.path() / "runs/run");
  EXPECT_EQ(train(folder.path(), "--max-steps 1 --name run").code, 2);
  EXPECT_TRUE(fs::is_empty(folder.path() / "outside"));
}

}  // namespace
}  // namespace tw::test
