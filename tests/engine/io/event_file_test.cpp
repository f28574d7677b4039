#include "engine/io/event_file.h"

#include "engine/core/error.h"
#include "tests/support/error_text.h"
#include "tests/support/event_records.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::vector<int64_t> steps_of(const fs::path& path) {
  std::vector<int64_t> steps;
  for (const EventValue& value : event_values(text_of(path))) steps.push_back(value.step);
  return steps;
}

void write_steps(const fs::path& path, int64_t keep_through, const std::vector<int64_t>& steps) {
  EventFile file(path, keep_through);
  for (const int64_t step : steps) file.scalars(step, {{"loss", 0.5}});
}

TEST(EventFile, BeginsAsThoseOfTensorFlow) {
  const TempFolder folder;
  const EventFile file(folder / "e", 0);
  const std::string text = text_of(folder / "e");
  // length 24 and its checksum, as every file that TensorFlow writes begins, then field 1
  EXPECT_EQ(text.substr(0, 13), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09", 13));
  EXPECT_EQ(text.size(), 12 + 24 + 4);
  EXPECT_EQ(text.substr(21, 15),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST(EventFile, HasScalarsAndHistograms) {
  const TempFolder folder;
  {
    EventFile file(folder / "e", 0);
    file.scalars(3, {{"loss", 0.5}, {"top1", 0.25}});
    Histogram values;
    values.add(-2, -1, 5);
    values.add(1, 2, 7);
    values.sum = 3.5;
    values.squares = 20;
    file.histogram(300, "gradient", values);
  }
  const auto values = event_values(text_of(folder / "e"));
  ASSERT_EQ(values.size(), 3);
  EXPECT_EQ(values[0].name, "loss");
  EXPECT_EQ(values[0].scalar, 0.5f);
  EXPECT_EQ(values[1].name, "top1");
  EXPECT_EQ(values[1].step, 3);
  EXPECT_EQ(values[2].name, "gradient");
  EXPECT_EQ(values[2].step, 300);
  const auto number = [&](int field) { return number_of<double>(values[2].histogram.text(field)); };
  EXPECT_EQ(number(1), -2);
  EXPECT_EQ(number(2), 2);
  EXPECT_EQ(number(3), 12);
  EXPECT_EQ(number(4), 3.5);
  EXPECT_EQ(number(5), 20);
  // the gap between the bins is a bin of its own
  const std::vector<double> ends{-2, -1, 1, 2}, counts{0, 5, 0, 7};
  EXPECT_EQ(numbers_of(values[2].histogram.text(6)), ends);
  EXPECT_EQ(numbers_of(values[2].histogram.text(7)), counts);
}

TEST(EventFile, ResumeDropsEventsBeyondTheCheckpoint) {
  const TempFolder folder;
  write_steps(folder / "e", 0, {1, 2, 127, 128, 300, 20000});
  write_steps(folder / "e", 128, {129});
  EXPECT_EQ(steps_of(folder / "e"), (std::vector<int64_t>{1, 2, 127, 128, 129}));
  write_steps(folder / "e", 0, {1});
  EXPECT_EQ(steps_of(folder / "e"), std::vector<int64_t>{1});
}

TEST(EventFile, ADamagedEndIsDropped) {
  const TempFolder folder;
  write_steps(folder / "whole", 0, {1, 2});
  const std::string whole = text_of(folder / "whole");
  for (size_t length = whole.size() - 1; length > whole.size() - 20; --length) {
    std::ofstream(folder / "e", std::ios::binary) << whole.substr(0, length);
    write_steps(folder / "e", 100, {2});
    EXPECT_EQ(steps_of(folder / "e"), (std::vector<int64_t>{1, 2})) << length;
  }
  for (size_t at = whole.size() - 20; at < whole.size(); ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    std::ofstream(folder / "e", std::ios::binary) << damaged;
    write_steps(folder / "e", 100, {2});
    EXPECT_EQ(steps_of(folder / "e"), (std::vector<int64_t>{1, 2})) << at;
    EXPECT_EQ(text_of(folder / "e").size(), whole.size()) << at;
  }
}

TEST(EventFile, WhatIsNoEventFileIsReplaced) {
  const TempFolder folder;
  std::ofstream(folder / "e") << std::string(100, 'x');
  write_steps(folder / "e", 5, {6});
  EXPECT_EQ(steps_of(folder / "e"), std::vector<int64_t>{6});
}

TEST(EventFile, ARecordThatIsNoEventIsDropped) {
  const TempFolder folder;
  write_steps(folder / "e", 0, {1});
  const std::string whole = text_of(folder / "e");
  // a record without data: its length, and the checksums of the length and of nothing
  const std::string empty("\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2", 16);
  std::ofstream(folder / "e", std::ios::binary) << whole << empty;
  write_steps(folder / "e", 100, {2});
  EXPECT_EQ(steps_of(folder / "e"), (std::vector<int64_t>{1, 2}));
}

TEST(EventFile, ARowMayHoldSubnormalNumbers) {
  const TempFolder folder;
  EventFile(folder / "e", 0).row(1, "step", "step,lr,loss,top1", "1,1e-310,nan,-0.5");
  const auto values = event_values(text_of(folder / "e"));
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[0].scalar, 0);
  EXPECT_TRUE(std::isnan(values[1].scalar));
  EXPECT_EQ(values[2].scalar, -0.5f);
}

TEST(EventFile, ASymbolicLinkIsReplacedAndItsTargetStays) {
  const TempFolder folder;
  write_steps(folder / "target", 0, {1, 2});
  const std::string before = text_of(folder / "target");
  for (const int64_t keep : {0, 1, 2}) {
    fs::create_symlink("target", folder / "e");
    write_steps(folder / "e", keep, {3});
    EXPECT_FALSE(fs::is_symlink(folder / "e"));
    EXPECT_EQ(text_of(folder / "target"), before) << keep;
    EXPECT_EQ(steps_of(folder / "e").size(), static_cast<size_t>(keep) + 1);
    fs::remove(folder / "e");
  }
}

TEST(EventFile, AFileThatCannotBeReadIsAnError) {
  const TempFolder folder;
  fs::create_symlink("e", folder / "e");  // to itself: opening it fails
  const std::string error = error_text<UserError>([&] { EventFile(folder / "e", 1); });
  EXPECT_TRUE(error.starts_with("[file] cannot read ")) << error;
}

TEST(EventFile, AFullDiskIsAFault) {
  const TempFolder folder;
  EventFile file(folder / "e", 0);
  const std::string error = error_text<Fault>([&] {
    const FullDisk disk(100);
    file.scalars(1, {{std::string(200, 'x'), 1}});
  });
  EXPECT_TRUE(error.starts_with("[file] writing ")) << error;
}

}  // namespace
}  // namespace tw::test
