// The folder of a run, and the checkpoint that it resumes from.
#include "apps/train/run_folder.h"

#include <chrono>
#include <fstream>
#include <future>
#include <memory>
#include <set>

#include "engine/core/error.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

class RunFolderTest : public testing::Test {
 protected:
  RunFolderTest() {
    config_.output_dir = root_.path().string();
    config_.model = "lenet";
    config_.sparsifier = "topk";
    config_.seed = 3;
  }
  RunFolder open(const std::string& name = "", const std::string& resume = "") {
    config_.name = name;
    config_.resume = resume;
    RunFolder folder = open_run_folder(config_, 4);
    if (folder.created) folder.created->keep();
    return folder;
  }
  /// Makes run/checkpoints/step, with the file that makes it complete.
  fs::path checkpoint(const std::string& run, const std::string& step) {
    fs::path path = root_ / run / "checkpoints" / step;
    fs::create_directories(path);
    std::ofstream(path / "model.safetensors") << "weights";
    return path;
  }
  std::string error(const std::string& name, const std::string& resume) {
    return error_text<UserError>([&] { open(name, resume); });
  }

  const TempFolder root_;
  TrainConfig config_;
};

TEST_F(RunFolderTest, ADerivedNameGetsANumberWhenItIsTaken) {
  EXPECT_EQ(open().path, root_ / "lenet-topk-s3");
  EXPECT_EQ(open().path, root_ / "lenet-topk-s3-2");
  const RunFolder third = open();
  EXPECT_EQ(third.path, root_ / "lenet-topk-s3-3");
  EXPECT_TRUE(third.checkpoint.empty());
  EXPECT_TRUE(fs::is_directory(third.checkpoints()));
}

TEST_F(RunFolderTest, AGivenNameMustBeFree) {
  EXPECT_EQ(open("mine").path, root_ / "mine");
  checkpoint("mine", "step-00000001");
  const std::string text = error("mine", "");
  EXPECT_TRUE(text.starts_with("[run] " + (root_ / "mine").string() + " exists")) << text;
  EXPECT_FALSE(fs::exists(root_ / "mine-2"));
}

/// A run that ended before its first step, e.g. at an error in the data, has no results to protect.
TEST_F(RunFolderTest, AGivenNameMayBeTakenAgainBeforeTheFirstStep) {
  open("mine");
  std::ofstream(root_ / "mine/config.json") << "{}";
  std::ofstream(root_ / "mine/steps.csv") << "step,epoch\n";
  EXPECT_EQ(open("mine").path, root_ / "mine");
  std::ofstream(root_ / "mine/steps.csv", std::ios::app) << "1,1\n";
  EXPECT_TRUE(error("mine", "").starts_with("[run] " + (root_ / "mine").string() + " exists"));
}

TEST_F(RunFolderTest, AResumedRunStaysInItsFolder) {
  const std::string run = checkpoint("run", "step-00000001").parent_path().parent_path();
  config_.flags = {"output-dir"};
  EXPECT_EQ(open("", run).path, run);
  fs::create_directory_symlink(run, root_ / "link");
  open("", (root_ / "link").string());
  config_.output_dir = root_ / "other";
  EXPECT_NE(error("", run).find(", but --resume continues in " + run), std::string::npos);
}

TEST_F(RunFolderTest, ARunThatIsRefusedLeavesNoFolder) {
  config_.name = "mine";
  EXPECT_EQ(open_run_folder(config_, 4).path, root_ / "mine");
  EXPECT_FALSE(fs::exists(root_ / "mine"));
  open("mine");
  open_run_folder(config_, 4);
  EXPECT_TRUE(fs::exists(root_ / "mine")) << "it was there before";
}

TEST_F(RunFolderTest, FilesOfOthersStay) {
  open("mine");
  std::ofstream(root_ / "mine/config.json") << "{}";
  checkpoint("mine", "step-00000001");
  const char* const others[] = {"movie.part",
                                "config.json.part",
                                "notes.12.part",
                                "thesis.txt",
                                "checkpoints/step-00000001.bak",
                                "checkpoints/.old.part"};
  for (const char* name : others) fs::create_directory(root_ / "mine" / name);
  const char* const parts[] = {"config.json.12.part", "events.out.tfevents.thinwire.7.part",
                               "checkpoints/.step-00000002.part", "checkpoints/.best-1.part"};
  for (const char* name : parts) fs::create_directory(root_ / "mine" / name);
  fs::create_directory(root_ / "mine/checkpoints/step-00000001.bak");
  std::ofstream(root_ / "mine/checkpoints/step-00000001.bak/model.safetensors") << "weights";
  const RunFolder folder = open("mine", "auto");
  EXPECT_EQ(folder.checkpoint.filename(), "step-00000001");
  for (const char* name : others) EXPECT_TRUE(fs::exists(root_ / "mine" / name)) << name;
  for (const char* name : parts) EXPECT_FALSE(fs::exists(root_ / "mine" / name)) << name;
}

TEST_F(RunFolderTest, AutoBeginsBesideFilesOfOthers) {
  fs::create_directory(root_ / "mine");
  std::ofstream(root_ / "mine/log.part") << "text";
  EXPECT_EQ(open("mine", "auto").path, root_ / "mine");
  EXPECT_TRUE(fs::exists(root_ / "mine/log.part"));
  EXPECT_TRUE(error("mine", "").starts_with("[run] " + (root_ / "mine").string() + " exists"));
}

TEST_F(RunFolderTest, StepsOfMoreThanEightDigitsComeLater) {
  for (const char* step : {"step-99999998", "step-99999999", "step-100000000"})
    checkpoint("run", step);
  EXPECT_EQ(open("run", "auto").checkpoint.filename(), "step-100000000");
  remove_old_checkpoints(root_ / "run/checkpoints", 2, 0);
  EXPECT_FALSE(fs::exists(root_ / "run/checkpoints/step-99999998"));
  EXPECT_TRUE(fs::exists(root_ / "run/checkpoints/step-100000000"));
  remove_newer_checkpoints(root_ / "run/checkpoints", 99999999);
  EXPECT_TRUE(fs::exists(root_ / "run/checkpoints/step-99999999"));
  EXPECT_FALSE(fs::exists(root_ / "run/checkpoints/step-100000000"));
}

TEST_F(RunFolderTest, TheLockNoticesAnotherFolderInItsPlace) {
  const RunFolder folder = open("mine");
  folder.lock->check_place(folder.path);
  fs::rename(root_ / "mine", root_ / "moved");
  EXPECT_THROW(folder.lock->check_place(folder.path), Fault);
  fs::create_directory(root_ / "mine");
  EXPECT_THROW(folder.lock->check_place(folder.path), Fault);
}

TEST_F(RunFolderTest, AnOutputFolderThatCannotBeCreatedIsAUserError) {
  std::ofstream(root_ / "file") << "text";
  config_.output_dir = (root_ / "file").string();
  EXPECT_TRUE(error("mine", "").starts_with("[file] cannot create "));
}

TEST_F(RunFolderTest, FindsTheLatestCheckpoint) {
  checkpoint("run", "step-00000009");
  checkpoint("run", "step-00000010");
  checkpoint("run", ".step-00000011.part");
  checkpoint("run", "other-99999999");
  std::ofstream(root_ / "run/checkpoints/step-00000013") << "no folder";
  const fs::path latest = root_ / "run/checkpoints/step-00000012";  // damaged: without weights
  fs::create_directories(latest);
  EXPECT_EQ(latest_checkpoint(root_ / "run"), latest);
  EXPECT_EQ(latest_checkpoint(root_ / "run/checkpoints"), latest);
  EXPECT_EQ(latest_checkpoint(latest), latest);
  fs::create_directories(root_ / "empty");
  EXPECT_EQ(latest_checkpoint(root_ / "empty"), std::nullopt);
  EXPECT_EQ(latest_checkpoint(root_ / "none"), std::nullopt);
}

TEST_F(RunFolderTest, ResumeAcceptsARunItsCheckpointsFolderOrOneCheckpoint) {
  checkpoint("run", "step-00000001");
  const fs::path latest = checkpoint("run", "step-00000002");
  for (const char* tail : {"", "/", "/checkpoints", "/checkpoints/", "/checkpoints/step-00000002",
                           "/checkpoints/step-00000002/", "/./checkpoints/../"}) {
    const RunFolder folder = open("", (root_ / "run").string() + tail);
    EXPECT_EQ(folder.path, root_ / "run") << tail;
    EXPECT_EQ(folder.checkpoint, latest) << tail;
  }
  EXPECT_EQ(open("", (root_ / "run/checkpoints/step-00000001").string()).checkpoint.filename(),
            "step-00000001");
}

TEST_F(RunFolderTest, ResumeFromARelativePath) {
  const fs::path latest = checkpoint("run", "step-00000002"), before = fs::current_path();
  fs::current_path(latest);
  EXPECT_EQ(open("", ".").path, root_ / "run");
  fs::current_path(root_.path());
  EXPECT_EQ(open("", "run").checkpoint, latest);
  fs::current_path(before);
}

TEST_F(RunFolderTest, ResumeFromNothingIsAUserError) {
  EXPECT_TRUE(error("", (root_ / "none").string()).ends_with("does not exist"));
  fs::create_directories(root_ / "empty");
  EXPECT_NE(error("", (root_ / "empty").string()).find("holds no checkpoint"), std::string::npos);
  std::ofstream(root_ / "file") << "text";
  EXPECT_NE(error("", (root_ / "file").string()).find("holds no checkpoint"), std::string::npos);
}

// such a run would write its tables two folders above the checkpoint
TEST_F(RunFolderTest, ACheckpointOutsideARunIsAUserError) {
  const fs::path copy = root_ / "deep/copied/step-00000002";
  fs::create_directories(copy.parent_path());
  fs::copy(checkpoint("run", "step-00000002"), copy);
  EXPECT_NE(error("", copy.string()).find("is not in the checkpoints folder of a run"),
            std::string::npos);
}

TEST_F(RunFolderTest, OneProcessWritesAtATime) {
  checkpoint("run", "step-00000002");
  const RunFolder held = open("run", "auto");
  EXPECT_TRUE(error("run", "auto").ends_with("/run is in use by another process"));
  config_.eval_only = true;  // only reads
  EXPECT_EQ(open("", (root_ / "run").string()).path, root_ / "run");
}

// resuming from an older one would remove the newer checkpoint
TEST_F(RunFolderTest, ResumesFromACheckpointAddedWhileWaitingForTheLock) {
  checkpoint("run", "step-00000002");
  for (const std::string& resume : {std::string("auto"), (root_ / "run").string()}) {
    auto held = std::make_unique<RunFolder>(open("run", "auto"));
    auto waiting = std::async(std::launch::async, [&] { return open("run", resume); });
    EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
    const fs::path added = checkpoint("run", resume == "auto" ? "step-00000003" : "step-00000004");
    held.reset();
    EXPECT_EQ(waiting.get().checkpoint, added);
  }
}

TEST_F(RunFolderTest, RemovesPartsOfWritesThatWereCutOff) {
  open("mine");
  std::ofstream(root_ / "mine/config.json.123.part") << "{";
  open("mine", "auto");
  EXPECT_FALSE(fs::exists(root_ / "mine/config.json.123.part"));
}

TEST_F(RunFolderTest, RemovesPartsOfWritesIntoACheckpoint) {
  for (const char* name : {"step-00000004", "best-00000004"}) {
    const fs::path path = checkpoint("run", name);
    for (const char* file :
         {"validated.json.123.part", "model.safetensors.45.part", "notes.1.part"})
      std::ofstream(path / file) << "{";
  }
  open("run", "auto");
  for (const char* name : {"step-00000004", "best-00000004"}) {
    const fs::path path = root_ / "run/checkpoints" / name;
    EXPECT_FALSE(fs::exists(path / "validated.json.123.part")) << path;
    EXPECT_FALSE(fs::exists(path / "model.safetensors.45.part")) << path;
    EXPECT_TRUE(fs::exists(path / "model.safetensors")) << path;
    EXPECT_TRUE(fs::exists(path / "notes.1.part")) << path << ": a file of the user";
  }
}

class CheckpointFolder : public RunFolderTest {
 protected:
  CheckpointFolder() {
    for (int step : {4, 8, 12, 16}) checkpoint("run", checkpoint_name(step));
    for (int step : {4, 12}) checkpoint("run", best_name(step));
  }
  std::set<std::string> names() const {
    std::set<std::string> all;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
      all.insert(entry.path().filename().string());
    return all;
  }
  const fs::path folder_ = root_ / "run/checkpoints";
};

TEST_F(CheckpointFolder, KeepsTheNewestAndTheBest) {
  remove_old_checkpoints(folder_, 0, 0);
  EXPECT_EQ(names().size(), 6u);
  remove_old_checkpoints(folder_, 3, 12);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000008", "step-00000012", "step-00000016",
                                            "best-00000012"}));
  remove_old_checkpoints(folder_, 1, 0);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000016", "best-00000012"}));
}

TEST_F(CheckpointFolder, LosesWhatIsNewerThanTheResumedStep) {
  remove_newer_checkpoints(folder_, 8);
  EXPECT_EQ(names(), (std::set<std::string>{"step-00000004", "step-00000008", "best-00000004"}));
}

TEST_F(CheckpointFolder, TheBestSurvivesTheRemovalOfItsStep) {
  EXPECT_FALSE(keep_best_checkpoint(folder_, 5));
  EXPECT_TRUE(keep_best_checkpoint(folder_, 8));
  remove_old_checkpoints(folder_, 1, 8);
  EXPECT_EQ(text_of(folder_ / "best-00000008/model.safetensors"), "weights");
  EXPECT_TRUE(keep_best_checkpoint(folder_, 8));
  EXPECT_EQ(latest_checkpoint(folder_), folder_ / "step-00000016");
}

TEST_F(RunFolderTest, AutoResumesTheLastRunOfItsName) {
  EXPECT_EQ(open("", "auto").path, root_ / "lenet-topk-s3");  // none yet: a new one
  const fs::path first = checkpoint("lenet-topk-s3", "step-00000005");
  EXPECT_EQ(open("", "auto").checkpoint, first);
  const fs::path second = checkpoint("lenet-topk-s3-2", "step-00000001");
  EXPECT_EQ(open("", "auto").checkpoint, second);
  EXPECT_EQ(open("mine", "auto").path, root_ / "mine");
  EXPECT_TRUE(open("mine", "auto").checkpoint.empty());
  EXPECT_EQ(open("lenet-topk-s3", "auto").checkpoint, first);
}

TEST_F(RunFolderTest, AutoResumesARunWithTheNameOfVersion020UnlessThereIsANewerOne) {
  checkpoint("lenet-topk-p4-s3", "step-00000005");
  const fs::path old = checkpoint("lenet-topk-p4-s3-2", "step-00000001");
  checkpoint("lenet-topk-p2-s3", "step-00000007");  // of other ranks
  EXPECT_EQ(open("", "auto").checkpoint, old);
  EXPECT_EQ(open().path, root_ / "lenet-topk-s3");
  EXPECT_EQ(open("", "auto").path, root_ / "lenet-topk-s3");
}

}  // namespace
}  // namespace tw::test
