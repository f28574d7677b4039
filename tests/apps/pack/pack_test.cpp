// The program pack.
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

/// Begins to pack 2,000 large images in `folder`, sends a signal when the file grows, and waits.
/// Without --foreground, `timeout` would send it twice.
Ended interrupted(const TempFolder& folder, const std::string& signal) {
  return run_command(fmt::format(
      "(cd {} && {{ timeout --foreground 120 {}/pack images --threads-per-rank 1 --output "
      "packed.tw & }} && "
      "pack=$! && "
      "for i in $(seq 1000); do ls packed.tw.*.part >/dev/null 2>&1 && break; sleep 0.02; done && "
      "kill -{} $pack && wait $pack)",
      folder.path().string(), TW_BIN, signal));
}

TEST(Pack, ASignalLeavesNoPartOfAFile) {
  const TempFolder folder;
  write_image_folder(folder / "images", 1, 1, 1);
  const fs::path first = folder / "images/train/n00000000/0000.JPEG";
  write_bytes(first, noise_jpeg(1, 900, 900));
  for (int i = 1; i < 2000; ++i)
    fs::create_hard_link(first, first.parent_path() / fmt::format("{:04}.JPEG", i));
  for (const char* signal : {"TERM", "INT"}) {
    const Ended ended = interrupted(folder, signal);
    EXPECT_EQ(ended.code, 1) << ended.output;
    EXPECT_EQ(ended.output, "error: [pack] stopped before the end\n");
    for (const auto& entry : fs::directory_iterator(folder.path()))
      EXPECT_EQ(entry.path().filename(), "images");
  }
}

TEST(Pack, AQualityNeedsASize) {
  const TempFolder folder;
  const Ended ended = run_command(fmt::format("{}/pack {} --output {}/x --quality 80", TW_BIN,
                                              folder.path().string(), folder.path().string()));
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.output,
            "error: [options] quality is for shrunk images; without --resize all keep their "
            "bytes\n");
}

}  // namespace
}  // namespace tw::test
