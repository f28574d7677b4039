// The configuration of a training run: defaults, then the file, then flags.
#include "apps/train/config.h"

#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"
#include "tests/support/train_config.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::string error(const std::vector<std::string>& flags) {
  return error_text<UserError>([&] { train_config(flags); });
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string put(const fs::path& path, const std::string& text) {
  std::ofstream(path) << text;
  return path.string();
}

TEST(Config, ModelsHaveTheirOwnDefaultLearningRate) {
  for (const char* model : {"lenet", "mlp"}) {
    EXPECT_EQ(train_config({"--model", model}).lr, 0.01) << model;
    EXPECT_EQ(train_config({"--lr", "0.1", "--model", model}).lr, 0.1) << model;
  }
  EXPECT_EQ(train_config({"--model", "resnet20"}).lr, 0.1);
}

TEST(Config, WarmupsAreResolvedAndTheirWordsAccepted) {
  using List = std::vector<double>;
  const TempFolder folder;
  EXPECT_EQ(train_config({}).density_warmup, (List{0.015625, 0.004}));
  EXPECT_EQ(train_config({"--density", "0.1"}).density_warmup, List{});
  EXPECT_EQ(train_config({"--density-warmup", "none"}).density_warmup, List{});
  EXPECT_EQ(train_config({"--density-warmup", ""}).density_warmup, List{});
  EXPECT_EQ(train_config({}).warmup_epochs, 2);
  EXPECT_EQ(train_config({"--epochs", "5"}).warmup_epochs, 1);
  EXPECT_EQ(train_config({"--warmup-epochs", "0"}).warmup_epochs, 0);
  for (const auto& [text, list] :
       {std::pair(R"("auto")", List{0.015625}), {R"("none")", List{}}, {"[0.5]", List{0.5}}}) {
    const std::string file =
        put(folder / "c.json", fmt::format(R"({{"density": 0.01, "density_warmup": {}}})", text));
    EXPECT_EQ(train_config({"--config", file}).density_warmup, list) << text;
  }
}

TEST(Config, DefaultsAreAValidRunOnGeneratedData) {
  const TrainConfig config = train_config({});
  EXPECT_EQ(config.dataset, "shapes");
  EXPECT_EQ(config.sparsifier, "dense");
  EXPECT_EQ(train_config({"--data-dir", "x"}).dataset, "cifar10");
  EXPECT_EQ(train_config({"--dataset", "shapes"}).dataset, "shapes");
}

TEST(Config, FlagsOverrideTheFileAndTheFileTheDefaults) {
  const TempFolder folder;
  const std::string file =
      put(folder / "c.json", R"({"lr": 0.5, "epochs": 3, "nesterov": true, "model": "lenet",
                                 "set": {"gaussiank.refine": "histogram"}})");
  const TrainConfig config = train_config({"--config", file, "--epochs=4", "--nesterov=false"});
  EXPECT_EQ(config.lr, 0.5);
  EXPECT_EQ(config.epochs, 4);
  EXPECT_FALSE(config.nesterov);
  EXPECT_EQ(config.model, "lenet");
  EXPECT_EQ(config.batch_size, TrainConfig().batch_size);
  EXPECT_EQ(config.settings.text("gaussiank.refine"), "histogram");
}

TEST(Config, ALearningRateInAFlagOrAFileIsGiven) {
  const TempFolder folder;
  EXPECT_FALSE(train_config({}).lr_given);
  EXPECT_TRUE(train_config({"--lr", "0.1"}).lr_given);
  EXPECT_TRUE(train_config({"--config", put(folder / "c.json", R"({"lr": 0.1})")}).lr_given);
}

TEST(Config, NodesOfTheHierarchicalExchangeAreTheNodesOfTheLink) {
  const TempFolder folder;
  const auto node = [](std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--link", "1Gbit,1ms"});
    return train_config(flags).settings.integer("hierarchical.node");
  };
  EXPECT_EQ(node({}), 4);
  EXPECT_EQ(node({"--ranks-per-node", "2"}), 2);
  EXPECT_EQ(node({"--set", "hierarchical.node=3", "--ranks-per-node", "2"}), 3);
  const std::string file = put(folder / "c.json", R"({"ranks_per_node": 2})"),
                    both = put(folder / "both.json",
                               R"({"ranks_per_node": 2, "set": {"hierarchical.node": 3}})");
  EXPECT_EQ(node({"--config", file}), 2);
  EXPECT_EQ(node({"--config", file, "--ranks-per-node", "8"}), 8);
  EXPECT_EQ(node({"--config", both}), 3);
  EXPECT_EQ(node({"--config", both, "--ranks-per-node", "8"}), 8);
  EXPECT_EQ(node({"--config", both, "--ranks-per-node", "8", "--set", "hierarchical.node=5"}), 5);
}

TEST(Config, TheDataSetIsRecognisedInItsFolder) {
  const TempFolder folder;
  const auto dataset = [&](const std::string& dir) {
    return train_config({"--data-dir", (folder / dir).string(), "--model", "lenet"}).dataset;
  };
  for (const char* half : {"both/train/ant", "both/val/ant", "photographs/val/ant", "other/ant",
                           "cifar-10-batches-bin"})
    std::filesystem::create_directories(folder / half);
  put(folder / "images.records", "thinwire-records");
  for (const char* images : {"both", "photographs", "images.records"})
    EXPECT_EQ(dataset(images), "imagefolder") << images;
  for (const char* rest : {"none", "", "cifar-10-batches-bin"})
    EXPECT_EQ(dataset(rest), "cifar10") << rest;
  EXPECT_NE(test::error_text<UserError>([&] {
              dataset("other");
            }).find("/other has no images in class folders; expected"),
            std::string::npos);
  EXPECT_EQ(train_config({}).dataset, "shapes");
}

TEST(Config, AFileNamesNoFurtherFile) {
  const TempFolder folder;
  const std::string file = put(folder / "c.json", R"({"config": "other.json"})");
  EXPECT_EQ(test::error_text<UserError>([&] {
              train_config({"--config", file});
            }),
            "[config] " + file + ": \"config\" names a file on the command line; remove it here");
  EXPECT_EQ(
      test::error_text<UserError>([&] {
        train_config({"--config", put(folder / "c.json", R"({"resume": "runs/a"})")});
      }),
      "[config] " + file + ": \"resume\" is auto here; --resume names a run on the command line");
}

TEST(Config, BrokenJsonNamesFileLineAndColumn) {
  const TempFolder folder;
  const std::string file = put(folder / "c.json", "{\"lr\": 0.5,\n  \"epochs\" 3}");
  const std::string text = error({"--config", file});
  EXPECT_TRUE(text.starts_with("[config] " + file + ": line 2, column 12: ")) << text;
  EXPECT_FALSE(contains(text, "\n"));
}

TEST(Config, AFileThatIsNotAConfigurationIsAUserError) {
  const TempFolder folder;
  for (const char* text :
       {"", "3", "[]", "null", "{\"lr\": 1e999}", "{\"lr\": \"\xff\"}", "{\"set\": 3}", "{} {}"}) {
    const std::string file = put(folder / "c.json", text);
    EXPECT_TRUE(error({"--config", file}).starts_with("[config] " + file)) << text;
  }
  EXPECT_TRUE(contains(error({"--config", (folder / "none").string()}), "No such file"));
  EXPECT_TRUE(contains(error({"--config", folder.path().string()}), "it is a folder"));
}

TEST(Config, AFileMayBeginWithAByteOrderMark) {
  const TempFolder folder;
  const std::string file = put(folder / "c.json", "\xef\xbb\xbf{\"epochs\": 3}");
  EXPECT_EQ(train_config({"--config", file}).epochs, 3);
}

TEST(Config, UnknownKeysAndValuesNameTheFile) {
  const TempFolder folder;
  const std::string key = put(folder / "key.json", R"({"learning_rate": 1, "epoch": 3})");
  EXPECT_TRUE(error({"--config", key}).starts_with("[config] " + key + ": unknown key"));
  const std::string value = put(folder / "value.json", R"({"epochs": -3})");
  EXPECT_TRUE(
      error({"--config", value}).starts_with("[config] " + value + ": epochs is -3; expected 0"));
  const std::string setting = put(folder / "set.json", R"({"set": {"gaussiank.refin": "paper"}})");
  EXPECT_TRUE(contains(error({"--config", setting}), "nearest is \"gaussiank.refine\""));
}

TEST(Config, ARepeatedKeyIsAUserError) {
  const TempFolder folder;
  const std::string twice = put(folder / "c.json", R"({"lr": 1, "set": {}, "lr": 2})");
  EXPECT_EQ(error({"--config", twice}), "[config] " + twice + ": key \"lr\" occurs twice");
  const std::string within =
      put(folder / "s.json", R"({"set": {"lp.block": "8", "lp.block": "9"}})");
  EXPECT_TRUE(contains(error({"--config", within}), "key \"lp.block\" occurs twice"));
  const std::string apart = put(folder / "a.json", R"({"run": {"lr": 1}, "lr": 2})");
  EXPECT_EQ(train_config({"--config", apart}).lr, 2);
}

// printing or copying such a value would run out of stack
TEST(Config, ADeeplyNestedValueIsAUserError) {
  const TempFolder folder;
  const std::string deep = std::string(150000, '[') + std::string(150000, ']');
  for (const char* key : {"lr", "set", "run", "no_key"}) {
    const std::string file = put(folder / "c.json", fmt::format(R"({{"{}": {}}})", key, deep));
    EXPECT_EQ(error({"--config", file}), "[config] " + file + ": nested deeper than 64 levels");
  }
}

TEST(Config, ALongValueIsTruncatedInItsError) {
  const TempFolder folder;
  const std::string ones = fmt::format("{}", fmt::join(std::vector(5000, 1), ","));
  const std::string file = put(folder / "c.json", R"({"lr": [)" + ones + "]}");
  EXPECT_LT(error({"--config", file}).size(), 500u);
  EXPECT_LT(error({"--lr", ones}).size(), 300u);
}

TEST(Config, SavedConfigurationParsesToTheSameValues) {
  const TempFolder folder;
  TrainConfig config =
      train_config({"--lr", "0.30000000000000004", "--sparsifier", "topk", "--nesterov",
                    "--lr-milestones", "", "--set", "gaussiank.refine=paper", "--name", "mine",
                    "--val-size", "100", "--allreduce", "ring"});
  Json json = config.json();
  json["run"] = {{"ranks", 4}};  // as in the config.json of a run folder
  const std::string file = put(folder / "config.json", json.dump(2));
  TrainConfig again = train_config({"--config", file});
  EXPECT_EQ(again.json(), config.json());
  EXPECT_EQ(again.lr, 0.1 + 0.2);
  EXPECT_TRUE(again.lr_milestones.empty());
  EXPECT_EQ(again.name, "mine");
}

TEST(Config, AnOptionThatAnOlderVersionLackedHadItsDefault) {
  const TrainConfig now = train_config({});
  Json older = TrainConfig(now).json();
  older.erase("apply_exif_orientation");
  EXPECT_TRUE(differences(older, now).empty());
  const std::vector<Difference> found =
      differences(older, train_config({"--apply-exif-orientation"}));
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].key, "apply_exif_orientation");
  EXPECT_EQ(found[0].then, false);
}

TEST(Config, LocalStepsAreOnAboveOneOrWithAnOuterOption) {
  const auto sgd = [](const std::vector<std::string>& flags) { return train_config(flags).sgd(); };
  EXPECT_EQ(sgd({}).local_steps, 0);
  EXPECT_EQ(sgd({"--local-steps", "1"}).local_steps, 0);
  EXPECT_EQ(sgd({"--local-steps", "3"}).local_steps, 3);
  EXPECT_EQ(sgd({"--local-steps", "3"}).outer_lr, 1);
  EXPECT_EQ(sgd({"--outer-lr", "0.7"}).local_steps, 1);
  EXPECT_EQ(sgd({"--outer-lr", "0.7"}).outer_lr, 0.7);
  EXPECT_EQ(sgd({"--outer-momentum", "0.9"}).local_steps, 1);
  EXPECT_EQ(sgd({"--outer-momentum", "0.9"}).outer_momentum, 0.9);
  EXPECT_EQ(sgd({"--sparsifier", "topk", "--residual-decay", "0.9"}).residual_decay, 0.9);
  // the file of a synchronous run does not turn them on
  const TempFolder folder;
  TrainConfig sync = train_config({});
  const std::string file = put(folder / "config.json", sync.json().dump());
  EXPECT_EQ(sgd({"--config", file}).local_steps, 0);
}

TEST(Config, AllreduceSetsTheSettingAndTheLastOneWins) {
  const TempFolder folder;
  const std::string unknown = put(folder / "c.json", R"({"allreduce": "rung"})");
  EXPECT_TRUE(contains(error({"--config", unknown}), "ring"));
  EXPECT_TRUE(contains(error({"--allreduce", "rung"}), "nearest is \"ring\""));
  EXPECT_EQ(train_config({"--allreduce", "ring"}).settings.text("allreduce.collective"), "ring");
  // the short form in the file must not override the long form in a flag
  const std::string ring = put(folder / "ring.json", R"({"allreduce": "ring"})");
  EXPECT_TRUE(contains(error({"--config", ring, "--set", "allreduce.collective=rung"}), "rung"));
}

TEST(Config, ResumeReadsTheConfigurationOfTheRun) {
  const TempFolder folder;
  const fs::path run = folder / "run-s12", step = run / "checkpoints/step-00000001";
  fs::create_directories(step);
  put(step / "model.safetensors", "weights");
  put(run / "config.json", R"({"model": "lenet", "epochs": 3})");
  for (const fs::path& resume : {run, run / "", run / "checkpoints", step, step / ""}) {
    const TrainConfig config = train_config({"--resume", resume.string(), "--epochs", "5"});
    EXPECT_EQ(config.model, "lenet") << resume;
    EXPECT_EQ(config.epochs, 5);
    EXPECT_EQ(config.resume, resume.string());
    // another name makes a branch, also that of a file
    EXPECT_FALSE(config.branches);
    for (const std::string name : {"run-s12", "run", "checkpoints", "run-s1", "other"}) {
      const std::string file = put(folder / "c.json", fmt::format(R"({{"name": "{}"}})", name));
      std::vector<std::string> flags{"--resume", resume.string(), "--config", file};
      EXPECT_EQ(train_config(flags).branches, name != "run-s12" && name != "run") << name;
      flags.emplace_back("--eval-only");
      EXPECT_FALSE(train_config(flags).branches);
    }
  }
}

// a config.json in a folder above the run folder does not belong to the run
TEST(Config, ResumeIgnoresConfigurationsAboveTheRunFolder) {
  const TempFolder folder;
  const fs::path far = folder / "a/b/c/d";
  fs::create_directories(far);
  put(far / "model.safetensors", "weights");
  put(folder / "config.json", R"({"model": "lenet"})");
  EXPECT_EQ(train_config({"--resume", far.string()}).model, TrainConfig().model);
}

TEST(Config, ImpossibleCombinationsAreUserErrors) {
  const auto says = [](const std::vector<std::string>& flags, const std::string& part) {
    const std::string text = error(flags);
    EXPECT_TRUE(contains(text, part)) << text;
    EXPECT_FALSE(contains(text, "\n")) << text;
  };
  says({"--model", "resnet21"}, "unknown model \"resnet21\"; nearest is \"resnet20\"");
  says({"--dataset", "cifar"}, "unknown dataset \"cifar\"; nearest is \"cifar10\"");
  says({"--sparsifier", "topkk"}, "\"topkk\"; nearest is \"topk\"");
  says({"--density", "0"}, "density is 0; expected more than 0, at most 1");
  says({"--density", "-1"}, "density is -1; expected more than 0, at most 1");
  says({"--density", "nan"}, "density is nan; expected more than 0, at most 1");
  says({"--density-warmup", "0.5,0"}, "density-warmup is 0.5,0; expected more than 0, at most 1");
  says({"--nesterov", "--momentum", "0"}, "nesterov needs a momentum above 0");
  says({"--name", "a/b"}, "name is a/b");
  says({"--name", ".."}, "name is ..");
  says({"--name", "new", "--resume", "runs/old"}, "runs/old does not exist");
  says({"--eval-only", "--pretrained", "x", "--eval-every", "never"}, "eval-only validates");
  says({"--data-dir", "x", "--dataset", "shapes"}, "data-dir is x, but the images of shapes are");
  says({"--set", "gaussiank.refine"}, "not of the form key=value");
  says({"--precision", "f16"}, "expected one of: auto, f32, tf32, bf16");
}

}  // namespace
}  // namespace tw::test
