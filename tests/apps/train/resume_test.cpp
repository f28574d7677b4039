// A stopped and resumed run equals an uninterrupted one, bit for bit.
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "apps/train/run_folder.h"
#include "apps/train/sweep.h"
#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "tests/support/arguments.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using Json = nlohmann::json;

/// ResNet-20 on small images, 18 steps an epoch, batch-norm statistics of its own on every rank.
std::string command(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} {} --model resnet20 --lr 0.02 --workers 4 "
      "--batch-size 8 --epochs 3 --eval-every 3 --checkpoint-steps 7 --density 0.01 {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), short_epochs(folder.path(), 16), arguments);
}

std::vector<std::string> rows(const std::filesystem::path& csv, size_t columns) {
  std::ifstream in(csv);
  std::vector<std::string> result;
  for (std::string line; std::getline(in, line);) {
    size_t end = 0;
    for (size_t i = 0; i < columns && end != std::string::npos; ++i) end = line.find(',', end + 1);
    result.push_back(line.substr(0, end));
  }
  return result;
}

class Resume : public testing::TestWithParam<std::string> {
 protected:
  std::mt19937 chance{std::random_device{}()};
};

TEST_P(Resume, KilledAndResumedRunEqualsUninterruptedRun) {
  const TempFolder folder;
  const std::string sparsifier = "--sparsifier " + GetParam();
  run_well(command(folder, sparsifier + " --name whole"));

  // steps.csv grows at every checkpoint; before the last one it has 50 lines
  const size_t lines = std::uniform_int_distribution<size_t>(2, 50)(chance);
  const testing::ScopedTrace trace(__FILE__, __LINE__, fmt::format("killed at {} lines", lines));
  const int killed = interrupt(command(folder, sparsifier + " --name cut"),
                               folder / "cut/steps.csv", lines, SIGKILL);
  ASSERT_EQ(killed, 128 + SIGKILL);
  ASSERT_FALSE(std::filesystem::exists(folder / "cut/summary.json"));
  // a run killed during its first checkpoint starts again from the beginning
  const bool saved = latest_checkpoint(folder / "cut").has_value();
  const Ended resumed = run_well(command(folder, sparsifier + " --name cut --resume auto"));
  EXPECT_EQ(resumed.says("resuming"), saved) << resumed.output;

  EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole"));
  EXPECT_EQ(rows(folder / "whole/metrics.csv", 1).size(), 4u);  // header and three epochs
  // the columns step to images, without times: no row is repeated or missing
  EXPECT_EQ(rows(folder / "cut/steps.csv", 7), rows(folder / "whole/steps.csv", 7));
  EXPECT_EQ(rows(folder / "cut/metrics.csv", 8), rows(folder / "whole/metrics.csv", 8));
}

INSTANTIATE_TEST_SUITE_P(Sparsifiers, Resume,
                         testing::Values("dense", "topk", "gaussiank", "hardthreshold",
                                         "sidco --scope layer", "gtopk --momentum-correction on",
                                         "topk --local-steps 4 --outer-momentum 0.5"));

class ResumeAtAStep : public testing::TestWithParam<std::string> {};

TEST_P(ResumeAtAStep, HasTheBitsOfTheUninterruptedRun) {
  const TempFolder folder;
  const std::string sparsifier = "--sparsifier " + GetParam();
  for (const char* run : {" --name whole --max-steps 20", " --name cut --max-steps 9"})
    run_well(command(folder, sparsifier + run));
  const Ended resumed = run_well(
      command(folder, sparsifier + " --max-steps 20 --resume " + (folder / "cut").string()));
  EXPECT_TRUE(resumed.says("step-00000009 at step 9")) << resumed.output;
  EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole"));
}

// All but scalecom, whose leader follows from the number of the step, keep a state of the exchange.
// That of Ok-Topk matters where it reuses its thresholds, as it does at this density.
INSTANTIATE_TEST_SUITE_P(Exchanges, ResumeAtAStep,
                         testing::Values("powersgd", "powersgd --scope layer", "scalecom",
                                         "oktopk --density 0.1 --density-warmup none"));

TEST(Stop, SigtermWritesACheckpointThatContinues) {
  // a rank stops between two exchanges, too; the run stops at the next
  for (const std::string options : {"--sparsifier topk", "--sparsifier topk --local-steps 5"}) {
    const TempFolder folder;
    run_well(command(folder, options + " --name whole"));
    const int code =
        interrupt(command(folder, options + " --name cut"), folder / "cut/steps.csv", 8, SIGTERM);
    ASSERT_EQ(code, 3) << options;
    std::ifstream in(folder / "cut/summary.json");
    EXPECT_TRUE(Json::parse(in)["val_top1"].is_null());  // nothing was validated yet
    run_well(command(folder, "--resume " + (folder / "cut").string()));
    EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole")) << options;
  }
}

TEST(Stop, AHangUpOrAClosedPipeEndsAsSigterm) {
  const TempFolder folder;
  const auto stopped = [&](const char* run) {
    return Json::parse(text_of(folder / run / "summary.json"))["stopped"].get<bool>();
  };
  const std::string hup = command(folder, "--name hup");
  EXPECT_EQ(interrupt(hup, folder / "hup/steps.csv", 8, SIGHUP), 3);
  EXPECT_TRUE(stopped("hup"));
  // in the second environment the program starts itself again
  for (const char* spins : {"OMP_WAIT_POLICY=passive", "-u OMP_WAIT_POLICY -u GOMP_SPINCOUNT"}) {
    const std::string stays =
        fmt::format("nohup env {} {}", spins, command(folder, "--name stays --max-steps 14"));
    EXPECT_EQ(interrupt(stays, folder / "stays/steps.csv", 8, SIGHUP), 0) << spins;
    EXPECT_FALSE(stopped("stays")) << spins;
    std::filesystem::remove_all(folder / "stays");
  }
  const Ended piped = run_command(fmt::format(
      "({}; echo $? >{}) | head -n 1", command(folder, "--name pipe"), (folder / "code").string()));
  EXPECT_EQ(piped.lines(), 1u) << piped.output;
  EXPECT_EQ(text_of(folder / "code"), "3\n");
  EXPECT_TRUE(stopped("pipe"));
}

TEST(Stop, ALimitOfTheFileSizeEndsAsAFullDisk) {
  const TempFolder folder;
  // in blocks of 512 or 1024 bytes; the weights of ResNet-20 take 1.1 MB
  const Ended ended = run_command("ulimit -f 900; " + command(folder, "--name r"));
  EXPECT_EQ(ended.code, 1) << ended.output;
  EXPECT_TRUE(ended.says("error: [file] writing ")) << ended.output;
  EXPECT_TRUE(ended.says("File too large")) << ended.output;
  run_well(command(folder, "--name r --resume auto --max-steps 8"));
}

TEST(Stop, EvalOnlyEndsBetweenBatchesWhenOneRankIsAsked) {
  const TempFolder folder;
  const std::string runs = folder.path().string();
  run_well(
      fmt::format("THINWIRE_CACHE={} {} --output-dir {} --name run --model mlp "
                  "--max-steps 1 --val-size 64",
                  TW_TEST_CACHE, TW_TRAIN, runs));
  Arguments arguments({"--resume", runs + "/run", "--eval-only", "--output-dir", runs});
  const OptionTable::Given flags = parse_flags(arguments.count(), arguments.values());
  const TrainConfig config = parse_train_configs(flags, read_run_options(flags))[0];
  const DataSplit data =
      datasets()
          .find(config.dataset)
          .value({.dir = std::filesystem::path(TW_TEST_CACHE) / "shapes-v1", .val_size = 64});
  run_on_threads(2, [&](Communicator& comm) {
    const std::atomic<bool> stop = comm.rank() == 1;
    Console console(false);
    const RunResult result = train(comm, config, data, stop, console);
    EXPECT_TRUE(result.stopped);
    EXPECT_TRUE(std::isnan(result.val_top1));
  });
}

TEST(Stop, UnderMpirunAllRanksStopTogether) {
  if (std::string(TW_MPIRUN).empty()) GTEST_SKIP() << "built without MPI";
  for (const char* options : {"", "--local-steps 5 --outer-momentum 0.5"}) {
    const TempFolder folder;
    const std::string run = fmt::format(
        "THINWIRE_CACHE={} {} -n 3 {} --output-dir {} {} --model resnet20 --batch-size 8 "
        "--epochs 3 --checkpoint-steps 7 {} ",
        TW_TEST_CACHE, TW_MPIRUN, TW_TRAIN, folder.path().string(), short_epochs(folder.path(), 16),
        options);
    run_well(run + "--name whole");
    EXPECT_EQ(interrupt(run + "--name cut", folder / "cut/steps.csv", 8, SIGTERM), 3) << options;
    run_well(run + "--resume " + (folder / "cut").string());
    EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole")) << options;
  }
}

TEST(Stop, ResumingAnOlderCheckpointRemovesNewerOnes) {
  const TempFolder folder;
  const std::string run = "--sparsifier topk --name r --max-steps ";
  run_well(command(folder, run + "21"));
  const std::filesystem::path checkpoints = folder / "r/checkpoints";
  const Ended resumed = run_well(command(
      folder, "--max-steps 20 --lr 0.03 --resume " + (checkpoints / "step-00000018").string()));
  EXPECT_TRUE(resumed.says("lr was 0.02, is now 0.03")) << resumed.output;
  EXPECT_FALSE(std::filesystem::exists(checkpoints / "step-00000021"));
  EXPECT_TRUE(std::filesystem::exists(checkpoints / "step-00000020"));
}

TEST(Stop, AFinishedRunThatIsResumedKeepsItsRowsAndLosesParts) {
  const TempFolder folder;
  run_well(command(folder, "--name r --max-steps 5"));
  const auto before = rows(folder / "r/metrics.csv", 8);
  ASSERT_EQ(before.size(), 2u);
  // of a removal that a power failure undid
  const std::filesystem::path part = folder / "r/checkpoints/.step-00000002.part";
  std::filesystem::create_directory(part);
  run_well(command(folder, "--max-steps 5 --resume " + (folder / "r").string()));
  EXPECT_EQ(rows(folder / "r/metrics.csv", 8), before);
  EXPECT_FALSE(std::filesystem::exists(part));
}

TEST(Stop, AnotherNumberOfRanksContinuesWithANotice) {
  const TempFolder folder;
  run_well(command(folder, "--sparsifier topk --name cut --keep-checkpoints 9 --max-steps 20"));
  const Ended resumed =
      run_well(command(folder, "--workers 3 --keep-checkpoints 9 --max-steps 25 --resume " +
                                   (folder / "cut").string()));
  EXPECT_TRUE(resumed.says(
      "4 ranks became 3: residual and batch-norm statistics are the mean of the 4 ranks"))
      << resumed.output;
  const auto changes = [&] {
    return nlohmann::json::parse(text_of(folder / "cut/config.json"))["run"]["changes"];
  };
  ASSERT_EQ(changes().size(), 1u) << changes();
  EXPECT_EQ(changes()[0]["step"], 20);
  EXPECT_TRUE(changes()[0]["text"].get<std::string>().starts_with(
      "images of a step were 32, are now 24; 4 ranks became 3"))
      << changes();

  // a later change is added; from an earlier checkpoint on, it is undone
  const std::string again =
      "--lr 0.03 --link 1Gbit,0.1ms --workers 3 --keep-checkpoints 9 --max-steps 26 --resume ";
  run_well(command(folder, again + (folder / "cut").string()));
  ASSERT_EQ(changes().size(), 2u) << changes();
  EXPECT_EQ(changes()[1]["text"],
            "lr was 0.02, is now 0.03; link was \"\", is now \"1Gbit,0.1ms\"");
  const std::string before = (folder / "cut/checkpoints/step-00000020").string();
  run_well(command(folder, again + before));
  ASSERT_EQ(changes().size(), 1u) << changes();
  EXPECT_TRUE(changes()[0]["text"].get<std::string>().starts_with(
      "lr was 0.02, is now 0.03; images of a step were 32, are now 24; 4 ranks"));
}

TEST(Stop, TheErrorOfADamagedCheckpointNamesAnOlderWholeOne) {
  const TempFolder folder;
  run_well(command(folder, "--name r --keep-checkpoints 3 --max-steps 15"));
  const std::filesystem::path run = folder / "r", older = run / "checkpoints/step-00000007";
  const auto flip_last_bit = [&](const std::string& file) {
    const std::filesystem::path path = run / "checkpoints" / file;
    std::string text = text_of(path);
    text.back() ^= 1;
    std::ofstream(path, std::ios::binary) << text;
  };
  flip_last_bit("step-00000014/rank-3.safetensors");  // not the newest whole one
  const std::string resume = "--max-steps 16 --keep-checkpoints 3 --resume ";
  for (const char* part : {"model", "momentum", "rank-0", "rank-2"}) {
    flip_last_bit(fmt::format("step-00000015/{}.safetensors", part));
    const Ended ended = run_command(command(folder, resume + run.string()));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_TRUE(ended.says(fmt::format("step-00000015/{}.safetensors", part))) << ended.output;
    EXPECT_TRUE(ended.says(fmt::format("; {0} is whole: --resume {0} uses it\n", older.string())))
        << ended.output;
    flip_last_bit(fmt::format("step-00000015/{}.safetensors", part));
  }
  const std::filesystem::path newest = run / "checkpoints/step-00000015",
                              weights = newest / "model.safetensors", away = folder / "away";
  const auto expect_missing = [&] {
    for (const std::filesystem::path& named : {run, newest}) {
      const Ended ended = run_command(command(folder, resume + named.string()));
      EXPECT_EQ(ended.code, 2) << ended.output;
      EXPECT_TRUE(ended.says(weights.string())) << ended.output;
      EXPECT_TRUE(ended.says(fmt::format("; {0} is whole: --resume {0} uses it\n", older.string())))
          << ended.output;
    }
  };
  std::filesystem::rename(weights, away);
  expect_missing();
  std::filesystem::rename(newest, folder / "newest");
  std::filesystem::create_directory(newest);  // empty
  expect_missing();
  std::filesystem::remove(newest);
  std::filesystem::rename(folder / "newest", newest);
  std::filesystem::rename(away, weights);
  // an error of another kind has no such advice
  const Ended other = run_command(command(folder, "--seed 7 --resume " + run.string()));
  EXPECT_EQ(other.code, 2);
  EXPECT_FALSE(other.says("is whole")) << other.output;
  EXPECT_EQ(run_command(command(folder, resume + older.string())).code, 0);
}

TEST(Stop, AutoTakesTheNewestWholeCheckpoint) {
  const TempFolder folder;
  const std::string options = " --keep-checkpoints 3 --max-steps 20";
  run_well(command(folder, "--name whole" + options));
  const auto expect_resume_at = [&](const char* step, const std::vector<std::string>& damaged) {
    std::filesystem::copy(folder / "whole", folder / "cut",
                          std::filesystem::copy_options::recursive);
    for (const std::string& file : damaged)
      std::filesystem::resize_file(folder / "cut/checkpoints" / file, 5000);
    const Ended ended = run_command(command(folder, "--name cut --resume auto" + options));
    EXPECT_TRUE(ended.says(step)) << ended.output;
    EXPECT_TRUE(ended.says("step-00000020 is damaged: the run goes on from an older one\n"));
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole"));
    std::filesystem::remove_all(folder / "cut");
  };
  expect_resume_at("at step 18", {"step-00000020/rank-1.safetensors"});
  expect_resume_at("at step 14",
                   {"step-00000020/model.safetensors", "step-00000018/momentum.safetensors"});
}

/// A run whose calls that need space on the disk fail from this one on.
Ended on_full_disk(const TempFolder& folder, int number) {
  return run_command(fmt::format(
      "env LD_PRELOAD={}/../tests/disk_faults.so TW_DISK_FOLDER={}/r TW_DISK_FAULT={}+:ENOSPC "
      "ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0 {}",
      TW_BIN, folder.path().string(), number,
      command(folder, "--name r --resume auto --max-steps 2")));
}

// exit code 2 would be a mistake of the user, which `thinwire run` does not try again
TEST(Stop, AFullDiskBeforeTheFirstStepIsAFault) {
  const TempFolder folder;
  const auto expect_fault = [&](int number) {
    const Ended ended = on_full_disk(folder, number);
    EXPECT_EQ(ended.code, 1) << number << ": " << ended.output;
    EXPECT_TRUE(ended.says(": No space left on device")) << number << ": " << ended.output;
  };
  for (const int number : {1, 2, 4}) expect_fault(number);
  EXPECT_FALSE(std::filesystem::exists(folder / "r"));
  run_well(command(folder, "--name r --max-steps 1"));
  for (const int number : {1, 3, 4, 5, 6}) expect_fault(number);  // 2 opens a file to read it
}

TEST(Stop, AResumeWithoutTheOptionsOfTheRunNamesTheMissingFile) {
  const TempFolder folder;
  const std::string run = (folder / "r").string();
  ASSERT_EQ(run_command(command(folder, "--name r --max-steps 2")).code, 0);
  std::filesystem::remove(folder / "r/config.json");
  const Ended ended = run_command(fmt::format("{} --model mlp --resume {}", TW_TRAIN, run));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.says("; " + run +
                         "/config.json, which holds the options of the run, is "
                         "missing\n"))
      << ended.output;
}

TEST(Stop, AResumeWithoutTablesSaysWhichRowsAreMissing) {
  const TempFolder folder;
  run_well(command(folder, "--name r --max-steps 20"));
  for (const char* table : {"steps.csv", "metrics.csv"})
    std::filesystem::remove(folder / "r" / table);
  const Ended resumed =
      run_well(command(folder, "--max-steps 21 --resume " + (folder / "r").string()));
  EXPECT_TRUE(resumed.says("steps.csv has no rows of the steps 1 to 20\n")) << resumed.output;
  EXPECT_TRUE(resumed.says("metrics.csv has no rows of the epochs 1 to 1\n")) << resumed.output;
  EXPECT_EQ(rows(folder / "r/metrics.csv", 1).size(), 2u);  // the second epoch
}

TEST(Stop, ErrorsNameTheUnusableCheckpoint) {
  const TempFolder folder;
  run_well(command(folder, "--name good --max-steps 2"));
  const std::string good = (folder / "good").string();
  const auto fails_with = [&](const std::string& arguments, const std::string& expected) {
    expect_end(command(folder, arguments), 2, expected);
  };
  fails_with("--sparsifier topk --resume " + good, "only one of them keeps a residual");
  run_well(command(folder, "--sparsifier topk --name after --max-steps 1"));
  fails_with("--sparsifier topk --momentum-correction on --resume " + (folder / "after").string(),
             "momentum_correction is \"auto\" in the checkpoint, \"on\" in this run; a new --name");
  fails_with("--sparsifier topk --momentum-correction on --name other --resume " +
                 (folder / "after").string(),
             "has momentum before the selection (momentum-correction)");
  fails_with("--model mlp --resume " + good, "model is \"resnet20\" in the checkpoint");
  fails_with("--seed 7 --resume " + good, "seed is 1 in the checkpoint, 7 in this run");

  const std::filesystem::path damaged = folder / "good/checkpoints/step-00000002";
  const auto flip_bit = [&](const std::filesystem::path& path, size_t at) {
    std::string text = text_of(path);
    text.at(at) ^= 1;
    std::ofstream(path, std::ios::binary) << text;
  };
  for (const char* name : {"model", "momentum", "rank-1"}) {
    const std::filesystem::path file = damaged / fmt::format("{}.safetensors", name);
    const std::string text = text_of(file);
    for (const auto& [at, expected] : {std::pair(text.size() - 1, "its checksum is wrong"),
                                       std::pair(text.find("checksum"), "no checksum")}) {
      flip_bit(file, at);
      fails_with("--resume " + good, expected);
      flip_bit(file, at);
    }
  }
  run_well(command(folder, "--name other --max-steps 1"));
  std::filesystem::copy_file(folder / "other/checkpoints/step-00000001/rank-1.safetensors",
                             damaged / "rank-1.safetensors",
                             std::filesystem::copy_options::overwrite_existing);
  fails_with("--resume " + good, "belongs to step 1; expected 2");
  std::filesystem::remove_all(folder / "good");
  run_well(command(folder, "--name good --max-steps 2"));
  std::filesystem::resize_file(damaged / "rank-2.safetensors", 100);
  fails_with("--resume " + good, "rank-2.safetensors");
  std::ofstream(damaged / "model.safetensors") << "something else altogether";
  fails_with("--resume " + good, "not a safetensors file");
}

}  // namespace
}  // namespace tw::test
