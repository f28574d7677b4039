// `bench data`: the loader beside decoding whole images.
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(BenchData, ReportsSpeedsAndTheMemoryOfEveryEpoch) {
  const TempFolder folder;
  test::write_image_folder(folder.path(), 2, 8, 1);
  const Ended ended = run_well(
      fmt::format("{}/bench data --data-dir {} --image-size 32 --batch-size 4 --threads-per-rank 2 "
                  "--epochs 3",
                  TW_BIN, folder.path().string()));
  const auto result = nlohmann::json::parse(ended.output);
  EXPECT_EQ(result["files"], 16);
  EXPECT_DOUBLE_EQ(
      result["folder_to_bare"].get<double>(),
      result["folder_images_per_s"].get<double>() / result["bare_images_per_s"].get<double>());
  ASSERT_EQ(result["rss_mib_by_epoch"].size(), 3u);
  for (const double mib : result["rss_mib_by_epoch"]) EXPECT_GT(mib, 1);
}

}  // namespace
}  // namespace tw::test
