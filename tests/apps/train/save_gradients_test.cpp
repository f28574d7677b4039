// The gradients that `train --save-gradients` writes.
#include <set>

#include "engine/io/safetensors.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::string saving(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model lenet --lr 0.02 --workers 2 "
      "--eval-every never {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

std::vector<float> vector_of(const fs::path& path, const std::string& tensor) {
  const SafetensorsReader file(path);
  const auto values = file.tensor(tensor).as<float>();
  return {values.begin(), values.end()};
}

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder))
    names.insert(entry.path().filename().string());
  return names;
}

std::string file_of(int step, int rank) {
  return fmt::format("step-{:08}-rank-{}.safetensors", step, rank);
}

/// What the step selects from follows from its gradient and the residual in the checkpoint before.
TEST(SaveGradients, USumsTheGradientAndTheResidualOfTheCheckpointBefore) {
  const TempFolder folder;
  const std::string run =
      "--sparsifier topk --density 0.01 --density-warmup none --residual-decay 0.5 --max-steps 3 "
      "--checkpoint-steps 1 --keep-checkpoints 0 --name ";
  run_well(saving(folder, run + "plain"));
  run_well(saving(folder, run + "saved --save-gradients 1"));
  EXPECT_EQ(weights_hash(folder / "plain"), weights_hash(folder / "saved"));
  EXPECT_FALSE(fs::exists(folder / "plain/gradients"));
  for (int rank = 0; rank < 2; ++rank) {
    const auto e =
        vector_of(folder / fmt::format("saved/checkpoints/step-00000002/rank-{}.safetensors", rank),
                  "residual");
    const fs::path path = folder / "saved/gradients" / file_of(3, rank);
    const auto g = vector_of(path, "g"), u = vector_of(path, "u");
    ASSERT_EQ(u.size(), e.size());
    ASSERT_EQ(g.size(), e.size());
    size_t owed = 0, moved = 0;
    for (size_t i = 0; i < u.size(); ++i) {
      ASSERT_EQ(u[i], g[i] + 0.5f * e[i]) << "element " << i << " of rank " << rank;
      owed += e[i] != 0;
      moved += g[i] != 0;
    }
    EXPECT_GT(owed, u.size() / 2);
    EXPECT_GT(moved, u.size() / 2);
    const SafetensorsReader file(path);
    EXPECT_TRUE(file.sealed());
    const auto& metadata = file.metadata();
    EXPECT_EQ(metadata.at("step"), "3");
    EXPECT_EQ(metadata.at("rank"), std::to_string(rank));
    EXPECT_EQ(metadata.at("ranks"), "2");
    EXPECT_EQ(metadata.at("sparsifier"), "topk");
    EXPECT_EQ(metadata.at("density"), "0.01");
    const auto tensors = nlohmann::json::parse(metadata.at("tensors"));
    EXPECT_EQ(tensors[0], nlohmann::json::parse(R"(["conv1.weight", [6, 5, 5, 3]])"));
    size_t elements = 0;
    for (const auto& tensor : tensors) {
      size_t product = 1;
      for (const size_t extent : tensor[1]) product *= extent;
      elements += product;
    }
    EXPECT_EQ(elements, u.size());
  }
}

TEST(SaveGradients, WithoutAResidualUIsTheGradientOfEveryNthStep) {
  const TempFolder folder;
  run_well(saving(folder, "--max-steps 5 --save-gradients 2 --name run"));
  EXPECT_EQ(files_in(folder / "run/gradients"),
            (std::set{file_of(2, 0), file_of(2, 1), file_of(4, 0), file_of(4, 1)}));
  const fs::path path = folder / "run/gradients" / file_of(4, 1);
  EXPECT_EQ(vector_of(path, "g"), vector_of(path, "u"));
  EXPECT_EQ(SafetensorsReader(path).metadata().at("density"), "1");
}

/// A run that continues on other ranks leaves none of those that the first one would have had.
TEST(SaveGradients, AResumedRunRemovesThoseOfLaterSteps) {
  const TempFolder folder;
  run_well(saving(folder, "--max-steps 4 --checkpoint-steps 2 --save-gradients 1 --name run"));
  fs::remove_all(folder / "run/checkpoints/step-00000004");
  fs::remove(folder / "run/summary.json");
  run_well(saving(folder, "--max-steps 3 --save-gradients 2 --workers 1 --resume " +
                              (folder / "run").string()));
  EXPECT_EQ(files_in(folder / "run/gradients"),
            (std::set{file_of(1, 0), file_of(1, 1), file_of(2, 0), file_of(2, 1)}));
}

TEST(SaveGradients, AFullDiskEndsTheRunWithOneLine) {
  const TempFolder folder;
  // a file of the ranks' gradients is larger, what a run writes besides is smaller
  const Ended ended = run_command(
      "ulimit -f 200; trap '' XFSZ; " +
      saving(folder, "--max-steps 2 --checkpoint-every 0 --save-gradients 1 --name run"));
  EXPECT_EQ(ended.code, 1) << ended.output;
  EXPECT_TRUE(ended.says("error: [file] writing")) << ended.output;
  EXPECT_TRUE(ended.says("gradients/step-00000001-rank-")) << ended.output;
  EXPECT_TRUE(files_in(folder / "run/gradients").empty());
}

}  // namespace
}  // namespace tw::test
