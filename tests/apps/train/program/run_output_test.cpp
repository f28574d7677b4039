// What a run leaves in its folder beside the tables and prints at its end, runs without validation,
// and branches.
#include <fstream>
#include <nlohmann/json.hpp>

#include "apps/train/summary.h"
#include "engine/io/safetensors.h"
#include "tests/support/program.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string mlp(const TempFolder& folder, const std::string& arguments) {
  return fmt::format("THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model mlp {}",
                     TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

Json json_of(const fs::path& file) { return Json::parse(text_of(file)); }

TEST(RunLog, HasTheLinesOfTheConsole) {
  const TempFolder folder;
  const Ended first = run_well(mlp(folder, "--workers 2 --max-steps 3 --name r"));
  const std::string log = text_of(folder / "r/run.log");
  EXPECT_EQ(first.output, log);
  for (const char* part : {"mlp: 820874 parameters", "\nepoch ", "results in "})
    EXPECT_NE(log.find(part), std::string::npos) << log;
  run_well(mlp(folder, "--workers 2 --max-steps 5 --resume " + (folder / "r").string()));
  const std::string both = text_of(folder / "r/run.log");
  EXPECT_TRUE(both.starts_with(log));
  EXPECT_NE(both.find("resuming", log.size()), std::string::npos) << both;
  // the bytes of the last line are those of the whole run, so its time says of what it is
  EXPECT_NE(both.find(" of training, ", log.size()), std::string::npos) << both;
  EXPECT_EQ(log.find(" of training, "), std::string::npos) << log;
}

TEST(RunFolder, AnErrorNamesTheRunOfThatName) {
  const TempFolder folder;
  const std::string here =
      fmt::format("cd {} && THINWIRE_CACHE={} {} --eval-every never --max-steps 1 ",
                  folder.path().string(), TW_TEST_CACHE, TW_TRAIN);
  run_well(here + "--model mlp --name first");
  expect_end(here + "--resume first", 2, "[resume] first does not exist; runs/first does\n");
  EXPECT_TRUE(run_command(here + "--pretrained first")
                  .says("[weights] first does not exist; runs/first does\n"));
  EXPECT_TRUE(run_command(here + "--resume none").says("[resume] none does not exist\n"));
  expect_end(here + "--model lenet --name first --resume auto", 2,
             "model is \"mlp\" in the checkpoint, \"lenet\" in this run; --resume with "
             "the folder of the run takes its options\n");
  EXPECT_EQ(run_command(here + "--resume runs/first").code, 0);
}

TEST(Normalisation, IsInTheConfigurationAndTheWeights) {
  const TempFolder folder;
  run_well(mlp(folder, "--max-steps 1 --name r"));
  const Json expected = {{"mean", {0.5, 0.5, 0.5}}, {"deviation", {0.25, 0.25, 0.25}}};
  EXPECT_EQ(json_of(folder / "r/config.json")["run"]["normalisation"], expected);
  const SafetensorsReader weights(folder / "r/checkpoints/step-00000001/model.safetensors");
  EXPECT_EQ(Json::parse(weights.metadata().at("normalisation")), expected);
}

TEST(UnreadSettings, AreRefused) {
  const TempFolder folder;
  const auto run = [&](const std::string& arguments) {
    return run_command(mlp(folder, "--workers 2 --max-steps 1 --eval-every never " + arguments));
  };
  const std::string refine = " --set gaussiank.refine=";
  for (const char* value : {"histogram", "paper"})
    for (const char* plan : {"", " --dry-run"}) {
      const Ended unread = run("--sparsifier topk" + refine + value + plan);
      EXPECT_EQ(unread.code, 2);
      EXPECT_EQ(unread.output,
                "error: [options] set gaussiank.refine has no effect: no part of this run reads "
                "it\n");
    }
  for (const char* plan : {"", " --dry-run"}) {
    const Ended read = run("--sparsifier gaussiank" + refine + "histogram" + plan);
    ASSERT_EQ(read.code, 0) << read.output;
    EXPECT_FALSE(read.says("no effect")) << read.output;
  }
}

TEST(Never, LeavesOutEveryValidation) {
  const TempFolder folder;
  for (const char* length : {"--epochs 0", "--max-steps 2", "--seeds 1,2 --max-steps 2"}) {
    const Ended ended = run_well(mlp(folder, fmt::format("--eval-every never {}", length)));
    EXPECT_TRUE(ended.says("\nnot validated  in ")) << ended.output;
    EXPECT_FALSE(ended.says("nan")) << ended.output;
  }
  const fs::path run = folder / "mlp-dense-s1-2";
  EXPECT_TRUE(json_of(run / "summary.json")["val_top1"].is_null());
  EXPECT_EQ(json_of(run / "config.json")["eval_every"], "never");
  const Ended both =
      run_command(mlp(folder, "--eval-only --eval-every never --resume " + run.string()));
  EXPECT_EQ(both.code, 2) << both.output;
}

TEST(Seeds, TheHintOfAStoppedRunContinuesAll) {
  const TempFolder folder;
  const std::string run = "--seeds 1,2 --epochs 300 --checkpoint-every 0 --eval-every never ";
  const std::string log = (folder / "log").string();
  EXPECT_EQ(interrupt(mlp(folder, run + "--name s"), folder / "s-s1/steps.csv", 2, SIGINT, log), 3);
  const std::string hint = "continue with the same command and --resume auto";
  EXPECT_NE(text_of(log).find(hint), std::string::npos) << text_of(log);
  // the hint holds: both seeds end, the first from where it stopped
  const int64_t step = json_of(folder / "s-s1/summary.json")["steps"];
  const Ended all =
      run_well(mlp(folder, fmt::format("{} --name s --resume auto --max-steps {}", run, step + 1)));
  EXPECT_TRUE(all.says(fmt::format("at step {}", step))) << all.output;
  for (const char* name : {"s-s1", "s-s2"})
    EXPECT_EQ(json_of(folder / name / "summary.json")["steps"], step + 1) << name;
}

TEST(RunOutput, OneThreadTakesTheSignals) {
  const TempFolder folder;
  // the mask of the others has SIGHUP (1), SIGINT (2) and SIGTERM (15)
  const Ended ended = run_command(fmt::format(
      "timeout 60 sh -c 'env {} >/dev/null & while kill -0 $! && [ ! -e {}/checkpoints/* ]; do "
      "sleep 0.1; done; grep -L SigBlk.*[4-7c-f]..[37bf]$ /proc/$!/task/*/status | wc -l; kill $!'",
      mlp(folder, "--name s --threads-per-rank 2 --epochs 300"), (folder / "s").string()));
  EXPECT_EQ(ended.output, "1\n");
}

TEST(RunOutput, SaysIfAThresholdSelectorSentFarFromK) {
  const TempFolder folder;
  const std::string run = "--workers 2 --density-warmup none --max-steps 4 --sparsifier ",
                    line = " times the entries that were asked for (nnz_over_k)";
  // a fixed threshold above every value
  const std::string none = "hardthreshold --set hardthreshold.lambda=1e9";
  EXPECT_TRUE(run_command(mlp(folder, run + none)).says("hardthreshold sent 0" + line));
  EXPECT_FALSE(run_command(mlp(folder, run + "topk")).says(line));
  EXPECT_FALSE(run_command(mlp(folder, run + "redsync")).says(line));
}

TEST(Branch, AnotherSparsifierNeedsAFolderOfItsOwn) {
  const TempFolder folder;
  const std::string run = "--workers 2 --density 0.01 --max-steps ";
  run_well(mlp(folder, run + "3 --sparsifier gaussiank --name first"));
  const fs::path first = folder / "first";
  const std::string before = text_of(first / "config.json"),
                    resume = run + "5 --sparsifier topk --resume " + first.string();
  expect_end(mlp(folder, resume), 2,
             "sparsifier is \"gaussiank\" in the checkpoint, \"topk\" in this run; "
             "a new --name with --resume PATH continues in a folder of its own");
  EXPECT_EQ(text_of(first / "config.json"), before);

  run_well(mlp(folder, resume + " --name second"));
  EXPECT_EQ(text_of(first / "config.json"), before);
  EXPECT_EQ(lines_of(first / "steps.csv"), 4u);
  EXPECT_EQ(lines_of(folder / "second/steps.csv"), 6u);  // three steps of the first run
  const Json config = json_of(folder / "second/config.json");
  EXPECT_EQ(config["sparsifier"], "topk");
  EXPECT_EQ(config["name"], "second");
  EXPECT_EQ(config["run"]["branched_from"], (first / "checkpoints/step-00000003").string());
  EXPECT_TRUE(fs::exists(folder / "second/checkpoints/step-00000003")) << "its first checkpoint";
  expect_end(mlp(folder, resume + " --name second"), 2, "exists; choose another --name");
  expect_end(mlp(folder, run + "3 --sparsifier topk --name third --resume " + first.string()), 2,
             "is at step 3, the end of 10 epochs or 3 steps");
  EXPECT_FALSE(fs::exists(folder / "third"));
}

TEST(Branch, ThatIsKilledBeforeItsFirstCheckpointLosesNothing) {
  const TempFolder folder;
  const std::string run = "--workers 2 --density 0.01 --batch-size 8 --checkpoint-every 100 ",
                    branch = run + "--sparsifier topk --max-steps 400 --resume ";
  const fs::path first = folder / "first", killed = folder / "killed";
  run_well(mlp(folder, run + "--sparsifier gaussiank --max-steps 3 --name first"));
  const std::string resume = branch + first.string() + " --name ";
  run_well(mlp(folder, resume + "whole"));
  run_command(
      fmt::format("({} >/dev/null & p=$!; until [ \"$(cat {} 2>/dev/null | wc -l)\" -gt 6 ]; do "
                  "sleep 0.01; done; "
                  "kill -9 $p)",
                  mlp(folder, resume + "killed"), (killed / "steps.csv").string()));
  ASSERT_FALSE(fs::exists(killed / "summary.json"));
  for (const std::string& rest :
       {run + "--sparsifier topk --resume auto --name killed --max-steps 6",
        "--max-steps 400 --resume " + killed.string()}) {
    run_well(mlp(folder, rest));
  }
  EXPECT_EQ(json_of(killed / "summary.json")["weights_hash"],
            json_of(folder / "whole/summary.json")["weights_hash"]);
  EXPECT_EQ(lines_of(killed / "steps.csv"), 401u);
}

TEST(Resume, OfAFinishedRunChangesNothing) {
  const TempFolder folder;
  run_well(mlp(folder, "--max-steps 3 --workers 2 --name run"));
  const fs::path run = folder / "run";
  const std::string config = text_of(run / "config.json"), summary = text_of(run / "summary.json"),
                    log = text_of(run / "run.log");
  expect_end(mlp(folder, "--workers 1 --resume " + run.string()), 0, "is finished; it has 3 steps");
  EXPECT_EQ(text_of(run / "config.json"), config);
  EXPECT_EQ(text_of(run / "summary.json"), summary);
  EXPECT_EQ(text_of(run / "run.log"), log);
}

TEST(Resume, OfARunThatEndedBeforeItsFirstCheckpointBeginsAnew) {
  const TempFolder folder;
  run_well(mlp(folder, "--max-steps 3 --workers 2 --seed 5 --name run"));
  const fs::path run = folder / "run";
  const auto hash = json_of(run / "summary.json")["weights_hash"];
  const auto cut = [&] {
    fs::remove(run / "summary.json");
    fs::remove_all(run / "checkpoints");
    fs::create_directory(run / "checkpoints");
  };
  const std::string resume =
      fmt::format("THINWIRE_CACHE={} {} --resume {}", TW_TEST_CACHE, TW_TRAIN, run.string());
  cut();
  EXPECT_TRUE(run_well(resume).says("new run: " + run.string() + " has no checkpoint to resume\n"));
  EXPECT_EQ(json_of(run / "summary.json")["weights_hash"], hash);
  EXPECT_EQ(lines_of(run / "steps.csv"), 4u);
  cut();
  for (const char* other : {" --eval-only", " --name other", " --seeds 1,2"})
    expect_end(resume + other, 2, "holds no checkpoint");
  fs::copy_file(run / "config.json", folder / "config.json");
  const std::string steps = text_of(run / "steps.csv");
  std::ofstream(run / "summary.json") << "{}";
  for (const fs::path& other : {run, folder.path()})
    expect_end(fmt::format("{} --resume {}", TW_TRAIN, other.string()), 2, "holds no checkpoint");
  const std::string last = " --resume auto --workers 2 --name run";
  expect_end(mlp(folder, last), 2, "has ended and has no checkpoint");
  EXPECT_EQ(text_of(run / "steps.csv"), steps);
}

TEST(Resume, ThatIsRefusedChangesNothing) {
  const TempFolder folder;
  run_well(mlp(folder, "--max-steps 4 --checkpoint-steps 2 --name run"));
  const fs::path run = folder / "run";
  const std::string config = text_of(run / "config.json"), steps = text_of(run / "steps.csv");
  std::ofstream(run / "metrics.csv") << "another,header\n1,2\n";
  const Ended refused = run_command(mlp(
      folder, "--max-steps 5 --lr 0.5 --resume " + (run / "checkpoints/step-00000002").string()));
  EXPECT_EQ(refused.code, 2) << refused.output;
  EXPECT_TRUE(fs::exists(run / "checkpoints/step-00000004"));
  EXPECT_EQ(text_of(run / "config.json"), config);
  EXPECT_EQ(text_of(run / "steps.csv"), steps);

  const Ended other = run_command(
      mlp(folder, "--sparsifier topk --max-steps 9 --name new --resume " + run.string()));
  EXPECT_EQ(other.code, 2) << other.output;
  EXPECT_FALSE(fs::exists(folder / "new"));
}

TEST(Summary, TheTableOfTheEndPrintsCellsThatAreNoNumbers) {
  const TempFolder folder;
  std::ofstream(folder / "t.csv") << ("epoch,lr\n1,0.123456789\n2,damaged,more\n3\n");
  testing::internal::CaptureStdout();
  Console console(true);
  print_table(console, folder / "t.csv");
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("     0.123457\n"), printed.npos) << printed;
  EXPECT_NE(printed.find("            2      damaged\n"), printed.npos) << printed;
}

TEST(Summary, ATableWithoutRowsIsNotPrinted) {
  const TempFolder folder;
  std::ofstream(folder / "t.csv") << "epoch,lr\n";
  testing::internal::CaptureStdout();
  Console console(true);
  print_table(console, folder / "t.csv");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tw::test
