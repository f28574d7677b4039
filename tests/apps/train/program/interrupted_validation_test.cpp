// A run whose validation fails or is killed has the checkpoint of the epoch, and resumes to the
// files of a run left alone.
#include <csignal>
#include <set>

#include "engine/io/event_file.h"
#include "tests/support/event_records.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// Two epochs of six steps, two ranks.
class InterruptedValidation : public testing::TestWithParam<std::string> {
 protected:
  std::string command(const std::string& arguments) const {
    return fmt::format(
        "{} --output-dir {} {} --model lenet --lr 0.02 --workers 2 --batch-size 50 --epochs 2 "
        "--threads-per-rank 1 --sparsifier topk {} {}",
        TW_TRAIN, folder_.path().string(), short_epochs(folder_.path()), GetParam(), arguments);
  }
  fs::path image() const { return folder_ / "data/val/n00000001/0007.JPEG"; }

  /// The lines of a table without the columns of times.
  std::vector<std::string> rows(const fs::path& table) const {
    std::ifstream in(table);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) {
      size_t end = 0;
      for (int i = 0; i < 7 && end != std::string::npos; ++i) end = line.find(',', end + 1);
      lines.push_back(line.substr(0, end));
    }
    return lines;
  }
  std::set<fs::path> files(const std::string& run) const {
    std::set<fs::path> all;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / run))
      all.insert(entry.path().lexically_relative(folder_ / run));
    return all;
  }
  /// Step and name of every event but the times.
  std::vector<std::pair<int64_t, std::string>> events(const std::string& run) const {
    std::vector<std::pair<int64_t, std::string>> found;
    for (const EventValue& value : event_values(text_of(folder_ / run / EventFile::kName)))
      found.emplace_back(value.step, value.name);
    return found;
  }
  void expect_equal_runs(const std::string& one, const std::string& other) const {
    EXPECT_EQ(weights_hash(folder_ / one), weights_hash(folder_ / other));
    for (const char* table : {"steps.csv", "metrics.csv", "distributions.csv", "histograms.csv",
                              "residual_histograms.csv"})
      EXPECT_EQ(rows(folder_ / one / table), rows(folder_ / other / table)) << table;
    EXPECT_EQ(files(one), files(other));
    EXPECT_EQ(events(one), events(other));
    for (const char* key : {"epochs", "steps", "images", "val_top1", "val_loss", "stopped"})
      EXPECT_EQ(summary(one)[key], summary(other)[key]) << key;
  }
  nlohmann::json summary(const std::string& run) const {
    return nlohmann::json::parse(text_of(folder_ / run / "summary.json"));
  }
  /// Runs train, which is killed in its validation, where it opens an image.
  void kill_in_validation(const std::string& arguments, const fs::path& checkpoint) const {
    const fs::path shim = fs::path(TW_BIN).parent_path() / "tests/disk_faults.so";
    ASSERT_TRUE(fs::exists(shim)) << shim;
    const Ended killed =
        run_command(fmt::format("exec env LD_PRELOAD={} TW_DISK_FOLDER={} TW_DISK_FAULT=1:kill "
                                "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 {}",
                                shim.string(), image().string(), command(arguments)));
    EXPECT_EQ(killed.code, 128 + SIGKILL) << killed.output;
    EXPECT_TRUE(fs::exists(checkpoint)) << "no checkpoint before the validation";
  }

  const TempFolder folder_;
};

TEST_P(InterruptedValidation, ADamagedImageLosesNothingOfTheEpoch) {
  run_well(command("--name whole"));
  const std::string good = text_of(image());
  std::ofstream(image(), std::ios::binary) << good.substr(0, good.size() / 2);
  const Ended failed = run_command(command("--name 'a cut'"));
  EXPECT_EQ(failed.code, 2) << failed.output;
  EXPECT_TRUE(failed.says("0007.JPEG")) << failed.output;
  EXPECT_TRUE(failed.output.ends_with(fmt::format("; from step 6, continue with {} --resume '{}'\n",
                                                  TW_TRAIN, (folder_ / "a cut").string())))
      << failed.output;
  EXPECT_TRUE(fs::exists(folder_ / "a cut/checkpoints/step-00000006/model.safetensors"));
  EXPECT_EQ(rows(folder_ / "a cut/metrics.csv").size(), 1u);
  expect_end(command("--workers 1 --epochs 1 --name alone"), 2,
             fmt::format("; from step 12, continue with {} --resume ", TW_TRAIN));
  std::ofstream(image(), std::ios::binary) << good;
  const Ended resumed = run_well(command("--name 'a cut' --resume auto"));
  EXPECT_TRUE(resumed.says("at step 6")) << resumed.output;
  expect_equal_runs("a cut", "whole");
}

TEST_P(InterruptedValidation, AKilledRunValidatesAfterItResumes) {
  run_well(command("--name whole"));
  const fs::path checkpoints = folder_ / "cut/checkpoints";
  kill_in_validation("--name cut", checkpoints / "step-00000006");
  // a kill after the row and before the note in the checkpoint: the row is not repeated
  run_well(command("--name cut --resume auto --max-steps 6"));
  fs::remove(checkpoints / "step-00000006/validated.json");
  fs::remove(folder_ / "cut/summary.json");
  const Ended resumed = run_well(command("--name cut --resume auto"));
  EXPECT_TRUE(resumed.says("at step 6")) << resumed.output;
  expect_equal_runs("cut", "whole");
}

TEST_P(InterruptedValidation, AKillAtTheLastStepLeavesTheRowToTheResumedRun) {
  // in the middle of the second epoch
  run_well(command("--name whole --max-steps 9"));
  kill_in_validation("--name cut --max-steps 9 --eval-every 0",
                     folder_ / "cut/checkpoints/step-00000009");
  run_well(command("--name cut --max-steps 9 --resume auto"));
  EXPECT_EQ(weights_hash(folder_ / "cut"), weights_hash(folder_ / "whole"));
  EXPECT_EQ(rows(folder_ / "cut/metrics.csv").back(), rows(folder_ / "whole/metrics.csv").back());
  EXPECT_EQ(rows(folder_ / "cut/metrics.csv").size(), 3u);  // header and two epochs
  EXPECT_EQ(rows(folder_ / "cut/steps.csv"), rows(folder_ / "whole/steps.csv"));
}

INSTANTIATE_TEST_SUITE_P(Options, InterruptedValidation,
                         testing::Values("",
                                         "--keep-best --keep-checkpoints 1 --tensorboard "
                                         "--analyze-every 3"));

}  // namespace
}  // namespace tw::test
