// The events that train --tensorboard writes, and those of a run that resumes or branches.
#include "engine/io/event_file.h"
#include "tests/support/event_records.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

void train(const TempFolder& folder, const std::string& arguments) {
  run_well(
      fmt::format("THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model mlp --workers 2 "
                  "--batch-size 128 --threads-per-rank 1 --tensorboard {}",
                  TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments));
}

/// A column of a table as text by the value of the first column.
std::map<int64_t, std::string> column(const fs::path& table, const std::string& name) {
  const std::string key = text_of(table).substr(0, text_of(table).find(','));
  std::map<int64_t, std::string> found;
  for (const auto& row : table_rows(table)) found[std::stoll(row.at(key))] = row.at(name);
  return found;
}

/// Step and value of all events with this name, in the order of the file.
std::vector<std::pair<int64_t, float>> events(const fs::path& run, const std::string& name) {
  std::vector<std::pair<int64_t, float>> found;
  for (const EventValue& value : event_values(text_of(run / EventFile::kName)))
    if (value.name == name) found.emplace_back(value.step, value.scalar);
  return found;
}

/// Expects the events of every step to be the rows of steps.csv.
void expect_steps(const fs::path& run, int64_t steps) {
  for (const char* name : {"train_loss", "bytes_sent", "sec_exchange"}) {
    std::vector<std::pair<int64_t, float>> expected;
    for (const auto& [step, text] : column(run / "steps.csv", name))
      expected.emplace_back(step, static_cast<float>(std::stod(text)));
    EXPECT_EQ(expected.size(), static_cast<size_t>(steps));
    EXPECT_EQ(events(run, std::string("step/") + name), expected) << name;
  }
}

TEST(TensorBoard, HasTheRowsOfTheTablesAndTheHistograms) {
  const TempFolder folder;
  train(folder, "--max-steps 6 --analyze-every 3 --name r");
  const fs::path run = folder / "r";
  expect_steps(run, 6);
  const auto top1 = events(run, "epoch/val_top1");
  ASSERT_EQ(top1.size(), 1);
  EXPECT_EQ(top1[0].first, 6);
  EXPECT_EQ(top1[0].second, std::stof(column(run / "metrics.csv", "val_top1")[1]));
  EXPECT_TRUE(events(run, "step/step").empty());

  double counted = 0;
  for (const double count : table_column(run / "histograms.csv", "count")) counted += count;
  for (const EventValue& value : event_values(text_of(run / EventFile::kName)))
    if (value.name == "gradient_and_residual") {
      EXPECT_EQ(value.step, 6);
      EXPECT_EQ(number_of<double>(value.histogram.text(3)), counted);
      counted = -1;
    }
  EXPECT_EQ(counted, -1) << "no histogram";
}

TEST(TensorBoard, ARunThatResumesOrBranchesHasEachStepOnce) {
  const TempFolder folder;
  train(folder, "--max-steps 6 --checkpoint-steps 2 --eval-every never --name r");
  const fs::path run = folder / "r", file = run / EventFile::kName;
  const std::string checkpoint = (run / "checkpoints/step-00000004").string();
  train(folder, "--max-steps 8 --name branch --resume " + checkpoint);
  expect_steps(folder / "branch", 8);
  expect_steps(run, 6);
  fs::resize_file(file, fs::file_size(file) - 5);  // as a killed run leaves it
  train(folder, "--max-steps 8 --resume " + checkpoint);
  expect_steps(run, 8);
}

}  // namespace
}  // namespace tw::test
