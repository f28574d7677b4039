// RunOnImages: a short run on image files, for tests of programs that read trained networks.
#pragma once

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {

/// A folder with `data`, images of the classes n00000000 to n00000002, and a run of lenet on them,
/// `runs/run`.
class RunOnImages : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::make_unique<TempFolder>();
    write_image_folder(*folder_ / "data", 3, 8, 6);
    const Ended ended = in_folder(
        fmt::format("{} --model lenet --precision f32 --threads-per-rank 1 --data-dir data "
                    "--image-size 32 --batch-size 4 --max-steps 30 --lr 0.002 --warmup-epochs 0 "
                    "--name run",
                    TW_TRAIN));
    ASSERT_EQ(ended.code, 0) << ended.output;
  }
  static void TearDownTestSuite() { folder_.reset(); }

  static Ended in_folder(const std::string& command) {
    return run_command(fmt::format("cd {} && {}", folder_->path().string(), command));
  }
  /// A program with these arguments, in the folder.
  static Ended run(const std::string& program, const std::string& arguments) {
    return in_folder(fmt::format("{}/{} {} --threads-per-rank 1", TW_BIN, program, arguments));
  }
  /// A test failure unless the program ends with exit code 2 and one line that holds the text.
  static void refuses(const std::string& program, const std::string& arguments,
                      const std::string& text) {
    const Ended ended = run(program, arguments);
    EXPECT_TRUE(ended.code == 2 && ended.lines() == 1 && ended.says(text))
        << program << " " << arguments << ": exit code " << ended.code << ", " << ended.output;
  }
  /// The cells of a table without quotes.
  static std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
    std::vector<std::vector<std::string>> rows;
    for (const std::string& line : split(text_of(*folder_ / csv), '\n'))
      rows.push_back(split(line, ','));
    return rows;
  }

  static inline std::unique_ptr<TempFolder> folder_;
};

}  // namespace tw::test
