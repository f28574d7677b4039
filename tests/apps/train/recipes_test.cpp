// Every file in configs/ except configs/repro, the claims of scripts/repro.py, is a configuration
// that train accepts. Tables here hold their settings; those of the papers are from the authors'
// code.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "apps/train/config.h"
#include "engine/io/file.h"
#include "sparsify/sync_sgd.h"
#include "tests/support/source_folder.h"
#include "tests/support/train_config.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

TrainConfig config_of(const fs::path& file) { return train_config({"--config", file.string()}); }

TEST(Recipes, AreAccepted) {
  const fs::path configs = source_folder() / "configs";
  int found = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(configs)) {
    const fs::path folder = entry.path().parent_path().filename();
    if (entry.path().extension() != ".json" || folder == "repro" || folder == "race" ||
        folder == "schema")
      continue;
    SCOPED_TRACE(entry.path().string());
    const auto bytes = read_file(entry.path());
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Json json = Json::parse(text, text + bytes.size());
    ++found;
    // a recipe may name a sparsifier that this build lacks
    const std::string sparsifier = json.value("sparsifier", "dense");
    if (!sparsifiers().entries().contains(sparsifier)) continue;
    const TrainConfig config = config_of(entry.path());
    EXPECT_EQ(config.model, json["model"].get<std::string>());
    EXPECT_TRUE(json.contains("seed")) << "a recipe says its seed";
  }
  EXPECT_GT(found, 25);
}

struct Recipe {
  const char* name;
  Json differences;  // from the defaults of train, or from those of its group
};
/// Recipes NETWORK-METHOD.json in a folder of configs/.
struct Group {
  const char* folder;
  Json common;
  std::vector<Recipe> networks, methods;
};

/// The settings of hclhkbu/gtopkssgd (dl_trainer.py, exp_configs/), hclhkbu/GaussianK-SGD and
/// synxlin/deep-gradient-compression (configs/, train.py); configs/README.md lists where a recipe
/// differs.
std::vector<Group> groups() {
  const Json cifar10{{"dataset", "cifar10"}, {"epochs", 140},   {"lr", 0.1},
                     {"weight_decay", 1e-4}, {"momentum", 0.9}, {"lr_milestones", {81, 122, 155}}};
  const Json imagenet{{"dataset", "imagenet"},
                      {"bad_images", "skip"},
                      {"lr", 0.01},
                      {"lr_milestones", {30, 60, 80}}};
  const auto with = [](Json object, const Json& more) {
    object.update(more);
    return object;
  };
  const Json resnet20 = with(cifar10, {{"model", "resnet20"}, {"batch_size", 32}}),
             vgg16 = with(cifar10, {{"model", "vgg16"}, {"batch_size", 128}}),
             resnet110 = with(cifar10, {{"model", "resnet110"}, {"batch_size", 128}});
  const Json gtopk_imagenet =
      with(imagenet, {{"epochs", 95}, {"weight_decay", 5e-4}, {"momentum", 0.9}});
  const Recipe dense{"dense", {{"sparsifier", "dense"}}}, topk{"topk", {{"sparsifier", "topk"}}},
      dgc{"dgc", {{"sparsifier", "dgc"}}};
  const Json dgc_imagenet{{"workers", 8},
                          {"seed", 1},
                          {"dataset", "imagenet"},
                          {"bad_images", "skip"},
                          {"loader_threads", 4},
                          {"batch_size", 32},
                          {"density", 0.001},
                          {"density_warmup", Json::array()},
                          {"epochs", 90},
                          {"lr", 0.0125},
                          {"lr_scaling", "linear"},
                          {"lr_schedule", "step"},
                          {"lr_milestones", {30, 60, 80}},
                          {"warmup_epochs", 5},
                          {"warmup_from", 0.125},
                          {"momentum", 0.9}};
  // in their DGC, nesterov changes only the momentum of the weight decay; here it would change both
  const Json resnet50{{"model", "resnet50"}, {"zero_init", true}, {"weight_decay", 1e-4}};
  const Json vgg16_bn{{"model", "vgg16_bn_imagenet"}, {"decay_all", true}, {"weight_decay", 5e-5}};
  return {
      {"gtopk-2019",
       {{"workers", 4},
        {"seed", 1},
        {"density", 0.001},
        {"density_warmup", {0.004}},
        {"lr_schedule", "step"},
        {"warmup_epochs", 10},
        {"warmup_from", 0.25},
        {"decay_all", true}},
       {{"resnet20", resnet20},
        {"vgg16", vgg16},
        {"alexnet", with(gtopk_imagenet, {{"model", "alexnet"}, {"batch_size", 256}})},
        {"resnet50", with(gtopk_imagenet, {{"model", "resnet50"}, {"batch_size", 64}})}},
       {dense,
        topk,
        {"gtopk",
         {{"sparsifier", "gtopk"},
          {"set", {{"gtopk.put_back", "paper"}, {"gtopk.rotate", "false"}}}}}}},
      {"gaussiank-2019",
       {{"workers", 16},
        {"seed", 1},
        {"density", 0.001},
        {"density_warmup", {0.015625, 0.004, 0.001}},
        {"lr_schedule", "step"},
        {"warmup_epochs", 5}},
       {{"resnet20", resnet20},
        {"vgg16", vgg16},
        {"resnet110", resnet110},
        {"resnet50", with(imagenet, {{"model", "resnet50"},
                                     {"batch_size", 32},
                                     {"epochs", 70},
                                     {"weight_decay", 6.1035e-05},
                                     {"momentum", 0.875}})}},
       {dense,
        topk,
        {"dgc", {{"sparsifier", "topk"}, {"selector", "dgc"}}},
        {"dgc-full", {{"sparsifier", "dgc"}}},
        {"randk", {{"sparsifier", "randk"}, {"no_error_feedback", true}}},
        {"gaussiank", {{"sparsifier", "gaussiank"}, {"set", {{"gaussiank.refine", "paper"}}}}}}},
      {"dgc-2018",
       dgc_imagenet,
       {{"resnet50", resnet50}},
       {{"dense", {{"sparsifier", "dense"}, {"nesterov", true}}}, dgc}},
      {"dgc-2018", dgc_imagenet, {{"vgg16", vgg16_bn}}, {dense, dgc}}};
}

/// The recipes of configs/ itself.
std::vector<Recipe> own_recipes() {
  return {{"resnet20-cifar10",
           {{"model", "resnet20"},
            {"dataset", "cifar10"},
            {"val_size", 5000},
            {"batch_size", 32},
            {"workers", 0},
            {"sparsifier", "dense"},
            {"density", 0.001},
            {"density_warmup", {0.015625, 0.004}},
            {"lr", 0.1},
            {"lr_schedule", "cosine"},
            {"epochs", 10},
            {"warmup_epochs", 2},
            {"momentum", 0.9},
            {"weight_decay", 1e-4},
            {"seed", 1}}},
          {"resnet18-imagenet10",
           {{"model", "resnet18"},
            {"dataset", "imagefolder"},
            {"batch_size", 32},
            {"workers", 4},
            {"sparsifier", "dense"},
            {"density", 0.01},
            {"density_warmup", {0.25, 0.0725, 0.015}},
            {"lr", 0.02},
            {"lr_schedule", "cosine"},
            {"epochs", 30},
            {"warmup_epochs", 5},
            {"momentum", 0.9},
            {"weight_decay", 5e-4},
            {"label_smoothing", 0.1},
            {"precision", "bf16"},
            {"seed", 1}}},
          {"resnet50-imagenet",
           {{"model", "resnet50"},
            {"dataset", "imagenet"},
            {"bad_images", "skip"},
            {"batch_size", 32},
            {"accumulate", 1},
            {"workers", 0},
            {"sparsifier", "dense"},
            {"lr", 0.0125},
            {"lr_scaling", "linear"},
            {"lr_schedule", "cosine"},
            {"epochs", 90},
            {"warmup_epochs", 5},
            {"momentum", 0.9},
            {"weight_decay", 1e-4},
            {"label_smoothing", 0.1},
            {"zero_init", true},
            {"loader_threads", 4},
            {"seed", 1}}}};
}

size_t recipes_in(const fs::path& folder) {
  size_t files = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    files += entry.path().extension() == ".json";
  return files;
}

/// Every option of a recipe is that of train's defaults with these differences.
void expect_settings(const fs::path& file, const std::vector<Json>& differences) {
  SCOPED_TRACE(file.string());
  Json expected = train_config({}).json();
  for (const Json& part : differences) expected.update(part, true);
  EXPECT_EQ(Json::diff(expected, config_of(file).json()).dump(), "[]");
}

TEST(Recipes, OfThePapersHaveTheAuthorsSettings) {
  std::map<fs::path, size_t> checked;
  for (const Group& group : groups()) {
    const fs::path folder = source_folder() / "configs" / group.folder;
    checked[folder] += group.networks.size() * group.methods.size();
    for (const Recipe& network : group.networks)
      for (const Recipe& method : group.methods)
        expect_settings(folder / fmt::format("{}-{}.json", network.name, method.name),
                        {group.common, network.differences, method.differences});
  }
  for (const auto& [folder, files] : checked) EXPECT_EQ(recipes_in(folder), files) << folder;
}

TEST(Recipes, OfThisProjectHaveTheSettingsOfTheTable) {
  const fs::path folder = source_folder() / "configs";
  const std::vector<Recipe> recipes = own_recipes();
  EXPECT_EQ(recipes_in(folder), recipes.size());
  for (const Recipe& recipe : recipes)
    expect_settings(folder / fmt::format("{}.json", recipe.name), {recipe.differences});
}

}  // namespace
}  // namespace tw::test
