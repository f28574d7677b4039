// `bench data` and its plain libjpeg loop.
#include "apps/bench/libjpeg_baseline.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(LibjpegBaseline, DecodesEveryKindOfJpegAndNamesADamagedFile) {
  const TempFolder folder;
  std::vector<std::string> files;
  for (const char* name :
       {"cmyk.jpg", "colour.jpg", "grayscale.jpg", "narrow.jpg", "progressive.jpg"})
    files.push_back(test::fixture(name).string());
  for (const int threads : {1, 3})
    for (const int side : {1, 32, 300})
      EXPECT_GT(libjpeg_images_per_second(files, side, threads), 0);
  for (const char* name : {"text.JPEG", "none.JPEG"}) {
    test::write_bytes(folder / "text.JPEG", std::vector<std::byte>(9));
    files.push_back((folder / name).string());
    const std::string text =
        error_text<UserError>([&] { libjpeg_images_per_second(files, 32, 2); });
    EXPECT_NE(text.find(files.back() + ": "), std::string::npos) << text;
    files.pop_back();
  }
}

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
