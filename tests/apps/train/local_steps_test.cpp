// train --local-steps: rounds and epochs, bytes, checkpoints between two exchanges, errors.

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// LeNet on two ranks; epochs of nine steps.
std::string local(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} {} --model lenet --precision f32 --lr 0.02 --workers 2 "
      "--batch-size 32 --epochs 2 {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), short_epochs(folder.path()), arguments);
}

/// The numbers of the steps in which bytes were sent.
std::vector<int> exchanges_in(const std::filesystem::path& run) {
  std::vector<int> steps;
  for (const auto& row : table_rows(run / "steps.csv"))
    if (std::stod(row.at("bytes_sent")) > 0) steps.push_back(std::stoi(row.at("step")));
  return steps;
}

TEST(LocalSteps, TheLastStepOfAnEpochEndsARound) {
  const TempFolder folder;
  for (const auto& [steps, expected] :
       {std::pair{4, std::vector<int>{4, 8, 9, 13, 17, 18}}, {100, std::vector<int>{9, 18}}}) {
    const std::string name = fmt::format("h{}", steps);
    run_well(
        local(folder, fmt::format("--local-steps {} --sparsifier topk --name {}", steps, name)));
    EXPECT_EQ(exchanges_in(folder / name), expected);
  }
}

TEST(LocalSteps, SoDoesTheLastStepOfTheRun) {
  const TempFolder folder;
  run_well(local(folder, "--local-steps 4 --max-steps 6 --name r"));
  EXPECT_EQ(exchanges_in(folder / "r"), (std::vector<int>{4, 6}));
}

TEST(LocalSteps, AnOuterOptionTurnsThemOn) {
  const TempFolder folder;
  run_well(local(folder, "--name sync"));
  run_well(local(folder, "--local-steps 1 --name one"));
  EXPECT_EQ(weights_hash(folder / "one"), weights_hash(folder / "sync"));
  for (const char* outer : {"--outer-lr 1", "--outer-momentum 0.9"}) {
    const Ended ended = run_command(local(folder, fmt::format("{} --dry-run", outer)));
    EXPECT_TRUE(ended.says("local SGD: an exchange every 1 step,")) << ended.output;
  }
}

TEST(LocalSteps, ThePlanHasTheBytesOfAnEpoch) {
  const TempFolder folder;
  const Ended ended =
      run_well(local(folder, "--local-steps 4 --outer-lr 0.7 --outer-momentum 0.9 --dry-run"));
  // two ranks send the 61,326 gradients and the status once each
  EXPECT_TRUE(
      ended.says("dense: 61326 of 61326 entries per exchange and rank, 479.1 KiB sent per "
                 "exchange"))
      << ended.output;
  EXPECT_TRUE(
      ended.says("local SGD: an exchange every 4 steps, outer rate 0.7, outer momentum 0.9; "
                 "3 exchanges and 1.4 MiB sent per epoch"))
      << ended.output;
}

TEST(LocalSteps, ACheckpointBetweenExchangesNeedsTheSameRanks) {
  const TempFolder folder;
  const std::string run = "--local-steps 4 --checkpoint-steps 6 --sparsifier topk ";
  run_well(local(folder, run + "--name whole"));
  run_well(local(folder, run + "--name cut --epochs 1"));
  const std::filesystem::path checkpoints = folder / "cut/checkpoints";
  const std::string between = (checkpoints / "step-00000006").string();

  const Ended other = run_command(local(folder, "--workers 3 --resume " + between));
  EXPECT_EQ(other.code, 2) << other.output;
  EXPECT_TRUE(
      other.says("it is 2 local steps after an exchange, where ranks differ; resume it on "
                 "2 ranks, or a checkpoint of the end of an epoch"))
      << other.output;
  expect_end(local(folder, "--eval-only --resume " + between), 2,
             "where ranks differ; validate a checkpoint of the end of an epoch");
  expect_end(local(folder, "--local-steps 1 --resume " + between), 2,
             "local_steps is 4 in the checkpoint, 1 in this run; a new --name");
  expect_end(local(folder, "--local-steps 1 --name other --resume " + between), 2,
             "takes local steps (local-steps); --pretrained ");
}

TEST(LocalSteps, ARunResumedBetweenExchangesHasTheSameBits) {
  const TempFolder folder;
  for (const char* sparsifier : {"dense", "topk", "dgc"}) {
    const std::string run = fmt::format(
        "--local-steps 4 --outer-lr 0.7 --outer-momentum 0.9 --checkpoint-steps 6 --epochs 1 "
        "--sparsifier {} ",
        sparsifier);
    const std::string name = fmt::format("{}-whole", sparsifier);
    run_well(local(folder, run + "--name " + name));
    const std::string whole = weights_hash(folder / name);
    // continues from step 6, the second step of a round, and writes the same files again
    const Ended resumed = run_well(
        local(folder, run + "--resume " + (folder / name / "checkpoints/step-00000006").string()));
    EXPECT_TRUE(resumed.says("at step 6")) << resumed.output;
    EXPECT_EQ(weights_hash(folder / name), whole) << sparsifier;
  }
}

TEST(LocalSteps, AnotherNumberOfRanksContinuesAfterAnExchange) {
  const TempFolder folder;
  run_well(local(folder, "--local-steps 4 --sparsifier topk --epochs 1 --name cut"));
  const Ended resumed =
      run_well(local(folder, "--workers 3 --resume " + (folder / "cut").string()));
  EXPECT_TRUE(resumed.says("2 ranks became 3")) << resumed.output;
}

TEST(LocalSteps, ANaNEndsAllRanksAtTheExchange) {
  const TempFolder folder;
  expect_end(local(folder, "--lr 1e9 --local-steps 4 --name far"), 4, "(steps 0 to 3)");
}

TEST(LocalSteps, RejectedCombinationsAreOneLine) {
  const TempFolder folder;
  for (const auto& [arguments, expected] :
       {std::pair{"--local-steps 0", "local-steps is 0; expected 1 to"},
        {"--local-steps 2 --sparsifier bsp", "it excludes local-steps"},
        {"--local-steps 2 --scope layer --overlap", "local-steps exchanges none"},
        {"--local-steps 2 --sparsifier topk --momentum-correction on", "outer-momentum above 0"},
        {"--local-steps 2 --analyze-every 5", "it excludes local-steps"},
        {"--local-steps 2 --save-gradients 5", "save-gradients adds the residual"},
        {"--outer-momentum 1.5", "outer-momentum is 1.5; expected 0 to 0.999"},
        {"--residual-decay 1.5 --sparsifier topk", "residual-decay is 1.5; expected 0 to 1"},
        {"--residual-decay 0.9", "dense keeps no residual"},
        {"--residual-decay 0.9 --sparsifier topk --no-error-feedback", "keeps no residual"}}) {
    const Ended ended = run_command(local(folder, arguments));
    EXPECT_EQ(ended.code, 2) << arguments;
    EXPECT_TRUE(ended.says(expected)) << ended.output;
    EXPECT_EQ(ended.lines(), 1u) << ended.output;
  }
}

}  // namespace
}  // namespace tw::test
