// --test-dir: images that are measured once, at the end.
#include <fstream>

#include "tests/support/run_on_images.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class TestDir : public RunOnImages {
 protected:
  static void SetUpTestSuite() {
    RunOnImages::SetUpTestSuite();
    // two of the three classes, with other images
    write_image_folder(*folder_ / "more", 3, 1, 9);
    fs::rename(*folder_ / "more/val", *folder_ / "test");
    fs::remove_all(*folder_ / "test/n00000000");
  }
  /// A training like that of the fixture.
  static Ended train(const std::string& arguments) {
    return in_folder(
        fmt::format("{} --model lenet --precision f32 --threads-per-rank 1 --data-dir data "
                    "--image-size 32 --batch-size 4 --max-steps 30 --lr 0.002 --warmup-epochs 0 {}",
                    TW_TRAIN, arguments));
  }
  static Json summary(const std::string& folder) {
    return Json::parse(text_of(*folder_ / folder / "summary.json"));
  }
  /// The accuracies that eval finds on the images.
  static Json evaluated(const std::string& weights) {
    const Ended ended =
        RunOnImages::run("eval", weights + " test --bad-images skip --output-dir evaluated");
    EXPECT_EQ(ended.code, 0) << ended.output;
    return summary("evaluated");
  }
};

TEST_F(TestDir, IsMeasuredAsByEvalAndChangesNothingElse) {
  for (const char* ranks : {"--workers 1", "--workers 3"}) {
    const std::string name = fmt::format("tested{}", ranks[10]);
    const Ended ended = train(fmt::format("{} --name plain{} --eval-every 0", ranks, ranks[10]));
    ASSERT_EQ(ended.code, 0) << ended.output;
    const Ended tested =
        train(fmt::format("{} --name {} --eval-every 0 --test-dir test", ranks, name));
    ASSERT_EQ(tested.code, 0) << tested.output;
    Json plain = summary(fmt::format("runs/plain{}", ranks[10])), found = summary("runs/" + name);
    const Json expected = evaluated("runs/" + name);
    EXPECT_EQ(expected["images"], 18);
    EXPECT_NEAR(found["test_top1"], expected["top1"], 1e-8) << ranks;
    EXPECT_EQ(found["test_top5"], 1);
    EXPECT_EQ(found["test_images"], "18 images of test");
    EXPECT_EQ(found["test_weights"], "the last step");
    for (const char* same : {"weights_hash", "val_top1", "val_loss", "val_images"})
      EXPECT_EQ(found[same], plain[same]) << same;
    EXPECT_FALSE(plain.contains("test_top1"));
    EXPECT_TRUE(tested.says(fmt::format("test top-1 {:.4f}", double(found["test_top1"]))))
        << tested.output;
  }
}

TEST_F(TestDir, IsMeasuredWithTheBestWeightsWhereTheyAreKept) {
  const Ended ended = train("--keep-best --lr 0.01 --seed 4 --name best --test-dir test");
  ASSERT_EQ(ended.code, 0) << ended.output;
  const Json found = summary("runs/best");
  const std::string weights = found["test_weights"];
  EXPECT_TRUE(weights.starts_with("best-")) << weights;
  const double best = evaluated("runs/best/checkpoints/" + weights)["top1"];
  EXPECT_NE(best, evaluated("runs/best")["top1"]) << "the last ones would do";
  EXPECT_NEAR(found["test_top1"], best, 1e-8);
}

TEST_F(TestDir, IsAddedToAFinishedRun) {
  ASSERT_EQ(train("--name finished").code, 0);
  const Json before = summary("runs/finished");
  const std::string resume = TW_TRAIN + std::string(" --resume runs/finished --test-dir test");
  ASSERT_EQ(in_folder(resume).code, 0);
  const Json after = summary("runs/finished");
  EXPECT_NEAR(after["test_top1"], evaluated("runs/finished")["top1"], 1e-8);
  for (const char* same : {"weights_hash", "val_top1", "steps", "images"})
    EXPECT_EQ(after[same], before[same]) << same;
  EXPECT_TRUE(in_folder(resume).says("is finished")) << "the second time there is nothing to do";
  EXPECT_TRUE(in_folder(resume + " --eval-only").says("test top-1 "));
}

TEST_F(TestDir, FollowsTheClassMap) {
  fs::create_directories(*folder_ / "mapped");
  for (const char* part : {"data", "test"})
    fs::copy(*folder_ / part, *folder_ / "mapped" / part, fs::copy_options::recursive);
  for (const char* half : {"data/train", "data/val", "test"})
    fs::rename(*folder_ / "mapped" / half / "n00000002", *folder_ / "mapped" / half / "a wasp");
  const Ended ended = in_folder(fmt::format(
      "{} --model lenet --image-size 32 --data-dir mapped/data --test-dir mapped/test --precision "
      "f32 --eval-only --pretrained runs/run --class-map 'a wasp=n00000002,names'",
      TW_TRAIN));
  EXPECT_TRUE(ended.says(fmt::format("test top-1 {:.4f}", double(evaluated("runs/run")["top1"]))))
      << ended.output;
}

TEST_F(TestDir, DamagedImagesAreSkippedOrNamed) {
  fs::copy(*folder_ / "test", *folder_ / "damaged", fs::copy_options::recursive);
  const fs::path first = fs::directory_iterator(*folder_ / "damaged/n00000001")->path();
  std::ofstream(first) << "no image";
  const Ended fails = train("--max-steps 1 --name no --test-dir damaged");
  EXPECT_EQ(fails.code, 2);
  EXPECT_TRUE(fails.says(first.filename().string()) && fails.says("--resume runs/no"))
      << fails.output;
  const Ended skips = train("--max-steps 1 --name skips --bad-images skip --test-dir damaged");
  EXPECT_EQ(skips.code, 0);
  EXPECT_TRUE(skips.says("1 damaged image skipped so far")) << skips.output;
}

TEST_F(TestDir, OtherClassesAndFoldersAreRefused) {
  fs::copy(*folder_ / "test", *folder_ / "other", fs::copy_options::recursive);
  fs::rename(*folder_ / "other/n00000001", *folder_ / "other/n0000001");
  const std::string data =
      "--data-dir data --model lenet --image-size 32 --name refused --test-dir ";
  for (const auto& [arguments, text] :
       {std::pair{data + "nowhere", "[options] test-dir is nowhere, which does not exist"},
        {data + "other",
         "[options] test-dir is other: no class of the training images is called \"n0000001\"; "
         "nearest is \"n00000001\""},
        {std::string("--dataset shapes --test-dir test"), "the images of shapes are generated"}})
    refuses("train", arguments, text);
  EXPECT_FALSE(fs::exists(*folder_ / "runs/refused"));
}

}  // namespace
}  // namespace tw::test
