// Combinations of values: names, states, and that finished runs are not trained again.
#include "apps/train/sweep.h"

#include <fstream>

#include "engine/core/error.h"
#include "tests/support/arguments.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Sweep : public testing::Test {
 protected:
  std::string put(const std::string& text) {
    std::ofstream(folder_ / "grid.json") << text;
    return (folder_ / "grid.json").string();
  }
  std::vector<TrainConfig> parse(const std::string& text, std::vector<std::string> flags = {}) {
    flags.insert(flags.end(), {"--config", put(text)});
    Arguments arguments(flags);
    return parse_train_configs(parse_flags(arguments.count(), arguments.values()), {});
  }
  std::string error(const std::string& text, const std::vector<std::string>& flags = {}) {
    return error_text<UserError>([&] { parse(text, flags); });
  }
  /// Trains the sweep of two densities, two steps each.
  Ended train(const std::string& flags) {
    put(kTwoDensities);
    return run_command(fmt::format("cd {} && THINWIRE_CACHE={} {} --config grid.json {}",
                                   folder_.path().string(), TW_TEST_CACHE, TW_TRAIN, flags));
  }
  std::string summary(const std::string& name) const {
    return text_of(folder_ / "runs" / name / "summary.json");
  }

  static constexpr const char* kTwoDensities =
      R"({"model": "mlp", "sparsifier": "topk", "precision": "f32", "max_steps": 2,
          "eval_every": "never", "sweep": {"density": [0.1, 0.01]}})";
  TempFolder folder_;
};

std::vector<std::string> names(const std::vector<TrainConfig>& cells) {
  std::vector<std::string> found;
  for (const TrainConfig& cell : cells) found.push_back(cell.name);
  return found;
}

TEST_F(Sweep, IsTheGridOfAllValuesInOrder) {
  const auto cells = parse(R"({"sparsifier": "topk",
      "sweep": {"density": [0.1, 0.01], "momentum_correction": ["on", "off"]}})");
  EXPECT_EQ(names(cells), (std::vector<std::string>{"grid-density-0.1-momentum_correction-on",
                                                    "grid-density-0.1-momentum_correction-off",
                                                    "grid-density-0.01-momentum_correction-on",
                                                    "grid-density-0.01-momentum_correction-off"}));
  EXPECT_EQ(cells[2].density, 0.01);
  EXPECT_EQ(cells[2].momentum_correction, Switch::on);
  EXPECT_EQ(cells[2].cell, "density 0.01, momentum_correction on");
  // what follows from other options follows in each run
  EXPECT_EQ(cells[0].density_warmup, std::vector<double>{});
  EXPECT_EQ(cells[2].density_warmup, std::vector<double>{0.015625});
  for (const TrainConfig& cell : cells) EXPECT_EQ(cell.resume, "auto");
}

TEST_F(Sweep, VariesSettingsListsAndModels) {
  const auto cells = parse(R"({"sparsifier": "gaussiank", "sweep": {
      "gaussiank.refine": ["paper", "histogram"], "model": ["mlp", "resnet20"],
      "density_warmup": [[0.5, 0.25], "none"]}})",
                           {"--name", "g"});
  ASSERT_EQ(cells.size(), 8u);
  EXPECT_EQ(cells[4].name, "g-gaussiank.refine-histogram-model-mlp-density_warmup-0.5_0.25");
  EXPECT_EQ(cells[4].settings.text("gaussiank.refine"), "histogram");
  EXPECT_EQ(cells[0].lr, 0.01);  // the default of each model
  EXPECT_EQ(cells[2].lr, 0.1);
  EXPECT_EQ(parse(R"({"sweep": {"lr": [0.5], "model": ["mlp"]}})")[0].lr, 0.5);
}

TEST_F(Sweep, AFlagReplacesTheValuesOfItsKey) {
  const std::string text =
      R"({"sweep": {"density": [0.1, 0.01], "gaussiank.refine": ["paper", "histogram"]}})";
  EXPECT_EQ(
      names(parse(text, {"--density", "0.5"})),
      (std::vector<std::string>{"grid-gaussiank.refine-paper", "grid-gaussiank.refine-histogram"}));
  EXPECT_EQ(names(parse(text, {"--set", "gaussiank.refine=paper"})),
            (std::vector<std::string>{"grid-density-0.1", "grid-density-0.01"}));
}

TEST_F(Sweep, WithoutListsThereIsOneRun) {
  const auto one = parse(R"({"density": 0.5})");
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].name + one[0].cell + one[0].resume, "");
}

TEST_F(Sweep, RefusesWhatItCannotVary) {
  for (const auto& [text, part] :
       {std::pair(R"({"sweep": 3})", "\"sweep\" is not an object"),
        {R"({"sweep": {"density": 0.1}})", "sweep: density is 0.1; expected a list of values"},
        {R"({"sweep": {"density": []}})", "expected a list of values"},
        {R"({"sweep": {"densty": [0.1]}})", "unknown key \"densty\"; nearest is \"density\""},
        {R"({"sweep": {"density": [0.1, 7]}})", "density is 7; expected more than 0, at most 1"},
        {R"({"sweep": {"name": ["a", "b"]}})", "sweep: name cannot be varied"},
        {R"({"sweep": {"density": [0.1, 0.1]}})", "two combinations have the name"},
        {R"({"sweep": {"gaussiank.refin": ["paper"]}})", "nearest is"},
        {R"({"sweep": {"model": ["mlp", "resnet21"]}})",
         "[sweep] model resnet21: unknown model"}}) {
    const std::string found = error(text);
    EXPECT_NE(found.find(part), std::string::npos) << text << ": " << found;
    EXPECT_EQ(found.find('\n'), std::string::npos) << found;
  }
  for (const char* flag : {"--resume=auto", "--eval-only"})
    EXPECT_NE(error(R"({"sweep": {"density": [0.1]}})", {flag}).find("it excludes"),
              std::string::npos)
        << flag;
  EXPECT_EQ(error(R"({"sweep": {"seed": [1, 2]}})", {"--seeds", "3,4"}),
            "[sweep] the sweep has seed; it excludes seeds");
  EXPECT_TRUE(parse(kTwoDensities)[0].is_given("density"));  // or has no effect, which is said
}

TEST_F(Sweep, TrainsEachCombinationOnce) {
  const Ended plan = train("--dry-run");
  ASSERT_EQ(plan.code, 0) << plan.output;
  EXPECT_TRUE(plan.says("sweep: 2 runs\n")) << plan.output;
  EXPECT_TRUE(plan.says("grid-density-0.1  to train  (density 0.1)")) << plan.output;
  EXPECT_FALSE(fs::exists(folder_ / "runs"));

  const Ended first = train("");
  ASSERT_EQ(first.code, 0) << first.output;
  const Json config = Json::parse(text_of(folder_ / "runs/grid-density-0.01/config.json"));
  EXPECT_EQ(config["density"], 0.01);
  EXPECT_FALSE(config.contains("sweep"));
  const std::string before = summary("grid-density-0.1") + summary("grid-density-0.01");
  EXPECT_NE(summary("grid-density-0.1"), "");
  const size_t results = first.output.find("\nresults of the sweep:\n  grid-density-0.1  ");
  ASSERT_NE(results, std::string::npos) << first.output;
  EXPECT_NE(first.output.find(" sent\n  grid-density-0.01  ", results), std::string::npos)
      << first.output;

  const Ended again = train("");
  ASSERT_EQ(again.code, 0) << again.output;
  EXPECT_TRUE(again.says("grid-density-0.1  finished")) << again.output;
  EXPECT_FALSE(again.says("resuming")) << again.output;
  EXPECT_EQ(summary("grid-density-0.1") + summary("grid-density-0.01"), before);

  const Ended longer = train("--max-steps 3");
  ASSERT_EQ(longer.code, 0) << longer.output;
  EXPECT_TRUE(longer.says("grid-density-0.1  to continue")) << longer.output;
  EXPECT_EQ(Json::parse(summary("grid-density-0.01"))["steps"], 3);

  const Ended other = train("--lr 0.5");
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("was trained with lr 0.01, now 0.5; choose another --name"))
      << other.output;
  EXPECT_TRUE(train("--set gtopk.rotate=true")
                  .says("was trained with gtopk.rotate \"false\", now \"true\"; choose another"));
}

TEST_F(Sweep, ContinuesAnInterruptedRun) {
  // the first run is cut after one step, as by a signal
  ASSERT_EQ(train("--max-steps 1").code, 0);
  fs::remove_all(folder_ / "runs/grid-density-0.01");
  const Ended ended = train("");
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("grid-density-0.1  to continue")) << ended.output;
  EXPECT_TRUE(ended.says("grid-density-0.01  to train")) << ended.output;
  EXPECT_TRUE(ended.says("at step 1")) << ended.output;
  fs::rename(folder_ / "runs", folder_ / "parts");
  ASSERT_EQ(train("").code, 0);
  for (const char* name : {"grid-density-0.1", "grid-density-0.01"})
    EXPECT_EQ(weights_hash(folder_ / "parts" / name), weights_hash(folder_ / "runs" / name));
}

TEST_F(Sweep, ARunOfAllEpochsIsFinished) {
  ASSERT_EQ(train("").code, 0);
  const TrainConfig cell =
      parse(kTwoDensities, {"--max-steps", "0", "--output-dir", (folder_ / "runs").string()})[0];
  EXPECT_EQ(state_of(cell), CellState::interrupted);
  Json whole = Json::parse(summary(cell.name));
  whole["epochs"] = cell.epochs;
  std::ofstream(folder_ / "runs" / cell.name / "summary.json") << whole;
  EXPECT_EQ(state_of(cell), CellState::finished);
}

TEST_F(Sweep, TrainsEverySeedOfACombination) {
  const Ended first = train("--seeds 1,2");
  ASSERT_EQ(first.code, 0) << first.output;
  EXPECT_TRUE(first.says("sweep: 2 runs, each with 2 seeds")) << first.output;
  for (const char* name : {"grid-density-0.1-s1", "grid-density-0.1-s2", "grid-density-0.01-s2"})
    EXPECT_NE(summary(name), "") << name;
  EXPECT_TRUE(train("--seeds 1,2").says("grid-density-0.01  finished"));
  const Ended more = train("--seeds 1,2,3");
  ASSERT_EQ(more.code, 0) << more.output;
  EXPECT_TRUE(more.says("grid-density-0.01  to continue")) << more.output;
  EXPECT_NE(summary("grid-density-0.01-s3"), "");
}

TEST_F(Sweep, ARepeatedSeedIsRefused) {
  EXPECT_EQ(error("{}", {"--seeds", "2,1,2"}), "[options] seeds has 2 twice");
  EXPECT_EQ(error(kTwoDensities, {"--seeds", "1,1"}), "[options] seeds has 1 twice");
}

TEST_F(Sweep, ADamagedRunFolderIsOneLineThatNamesTheFile) {
  const fs::path run = folder_ / "runs/grid-density-0.1";
  fs::create_directories(run);
  TrainConfig cell = parse(kTwoDensities, {"--output-dir", (folder_ / "runs").string()})[0];
  const auto refused = [&](const char* file, const std::string& text) {
    std::ofstream(run / "config.json") << cell.json();
    std::ofstream(run / "summary.json") << R"({"epochs": 1, "steps": 2, "stopped": false})";
    EXPECT_EQ(state_of(cell), CellState::finished);
    std::ofstream(run / file) << text;
    const std::string found = error_text<UserError>([&] { state_of(cell); });
    EXPECT_TRUE(found.starts_with("[sweep] " + (run / file).string())) << text << found;
  };
  for (const char* text : {"[]", "null", "[1]", "3", "\"x\""}) {
    refused("config.json", text);
    refused("summary.json", text);
  }
  refused("config.json", R"({"set": [1]})");
  refused("config.json", R"({"set": "x"})");
  refused("summary.json", R"({"epochs": "x"})");
  refused("summary.json", R"({"epochs": 1, "stopped": 0})");
  refused("summary.json", R"({"epochs": 0, "steps": [1]})");
}

TEST_F(Sweep, ADamagedRunFolderEndsAllRanks) {
  if (!*TW_MPIRUN) GTEST_SKIP() << "built without MPI";
  fs::create_directories(folder_ / "runs/grid-density-0.1");
  std::ofstream(folder_ / "runs/grid-density-0.1/config.json") << "[1]";
  put(kTwoDensities);
  expect_end(fmt::format("cd {} && timeout 60 {} -n 2 {} --threads-per-rank 1 --config grid.json",
                         folder_.path().string(), TW_MPIRUN, TW_TRAIN),
             2, "runs/grid-density-0.1/config.json holds no object\n");
}

TEST_F(Sweep, ARunThatDivergesDoesNotEndTheOthers) {
  std::string launch = TW_TRAIN;
  if (*TW_MPIRUN) launch = fmt::format("{} -n 2 {} --threads-per-rank 1", TW_MPIRUN, TW_TRAIN);
  put(R"({"model": "mlp", "precision": "f32", "max_steps": 4, "lr_schedule": "constant",
          "warmup_epochs": 0, "eval_every": "never", "sweep": {"lr": [1e9, 0.01]}})");
  const Ended ended = run_command(fmt::format("cd {} && THINWIRE_CACHE={} {} --config grid.json",
                                              folder_.path().string(), TW_TEST_CACHE, launch));
  EXPECT_EQ(ended.code, 4) << ended.output;
  EXPECT_TRUE(ended.says("[sweep] 1 of 2 runs failed: grid-lr-1000000000.0")) << ended.output;
  EXPECT_TRUE(ended.says("\n  grid-lr-1000000000.0  no result\n")) << ended.output;
  EXPECT_NE(summary("grid-lr-0.01"), "");
}

TEST_F(Sweep, ASeedThatFailsIsNamedAndDoesNotEndTheOthers) {
  put(R"({"model": "mlp", "precision": "f32", "max_steps": 4, "lr_schedule": "constant",
          "warmup_epochs": 0, "eval_every": "never", "sweep": {"lr": [1e9]}})");
  const Ended ended =
      run_command(fmt::format("cd {} && THINWIRE_CACHE={} {} --config grid.json --seeds 1,2",
                              folder_.path().string(), TW_TEST_CACHE, TW_TRAIN));
  EXPECT_EQ(ended.code, 4) << ended.output;
  EXPECT_TRUE(ended.says("\ngrid-lr-1000000000.0-s1 failed: [train] rank 0")) << ended.output;
  EXPECT_TRUE(ended.says("\ngrid-lr-1000000000.0-s2 failed: [train] rank 0")) << ended.output;
  EXPECT_TRUE(
      ended.says("[sweep] 2 of 2 runs failed: grid-lr-1000000000.0-s1, grid-lr-1000000000.0-s2"))
      << ended.output;
}

}  // namespace
}  // namespace tw::test
