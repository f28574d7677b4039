// Every file in configs/ is a configuration that train accepts.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/train/config.h"
#include "engine/io/file.h"
#include "sparsify/sync_sgd.h"
#include "tests/support/arguments.h"
#include "tests/support/source_folder.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

TEST(Recipes, AreAccepted) {
  const fs::path configs = source_folder() / "configs";
  int found = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(configs)) {
    if (entry.path().extension() != ".json") continue;
    SCOPED_TRACE(entry.path().string());
    const auto bytes = read_file(entry.path());
    const auto* text = reinterpret_cast<const char*>(bytes.data());
    const Json json = Json::parse(text, text + bytes.size());
    ++found;
    // a recipe may name a sparsifier that this build lacks
    const std::string sparsifier = json.value("sparsifier", "dense");
    if (!sparsifiers().entries().contains(sparsifier)) continue;
    Arguments arguments({"--config", entry.path().string()});
    const TrainConfig config = parse_train_config(arguments.count(), arguments.values());
    EXPECT_EQ(config.model, json["model"].get<std::string>());
    EXPECT_TRUE(json.contains("seed")) << "a recipe says its seed";
  }
  EXPECT_GT(found, 25);
}

}  // namespace
}  // namespace tw::test
