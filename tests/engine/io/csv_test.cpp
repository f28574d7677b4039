// Tables that a resumed run continues.
#include "engine/io/csv.h"

#include "engine/core/error.h"
#include "tests/support/error_text.h"
#include "tests/support/full_disk.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

const std::string kHeader = "step,loss";

void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Csv, HeaderAndRowsAreOnDiskImmediately) {
  const TempFolder folder;
  CsvFile csv(folder / "t.csv", kHeader, 0);
  EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n");
  csv.row("1,0.5");
  EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n1,0.5\n");
  csv.row("2,0.25");
  EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n1,0.5\n2,0.25\n");
}

TEST(Csv, ResumeDropsRowsBeyondTheCheckpoint) {
  const TempFolder folder;
  write_text(folder / "t.csv", "step,loss\n9,1\n10,2\n11,3\n100,4\n");
  CsvFile csv(folder / "t.csv", kHeader, 10);
  csv.row("11,5");
  EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n9,1\n10,2\n11,5\n");
}

TEST(Csv, ANewRunKeepsNoRow) {
  const TempFolder folder;
  write_text(folder / "t.csv", "step,loss\n1,1\n2,2\n");
  const CsvFile file(folder / "t.csv", kHeader, 0);
  EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n");
}

TEST(Csv, ATableThatCannotBeReadIsNotReplaced) {
  const TempFolder folder;
  std::filesystem::create_symlink("t.csv", folder / "t.csv");  // to itself: opening it fails
  EXPECT_THROW(CsvFile(folder / "t.csv", kHeader, 10), UserError);
  EXPECT_TRUE(std::filesystem::is_symlink(folder / "t.csv"));
}

TEST(Csv, AnIncompleteLastRowIsDropped) {
  const TempFolder folder;
  // "1" may be the first half of 17, and "12,0." that of any loss
  for (const char* half : {"1", "12,0.", "12,"}) {
    write_text(folder / "t.csv", std::string("step,loss\n11,1\n") + half);
    CsvFile csv(folder / "t.csv", kHeader, 1000);
    csv.row("12,2");
    EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n11,1\n12,2\n") << half;
  }
}

TEST(Csv, AnotherHeaderIsAUserErrorAndLeavesTheFile) {
  const TempFolder folder;
  for (const char* text : {"step,loss,new\n1,2,3\n", "step\n1\n", "\n"}) {
    write_text(folder / "t.csv", text);
    const std::string error =
        error_text<UserError>([&] { CsvFile csv(folder / "t.csv", kHeader, 10); });
    EXPECT_TRUE(error.starts_with("[csv] " + (folder / "t.csv").string())) << error;
    EXPECT_EQ(text_of(folder / "t.csv"), text);
  }
}

TEST(Csv, RowsOutOfOrderAreAUserErrorAndOthersAreCut) {
  const TempFolder folder;
  const std::string swapped = "step,loss\n1,1\n3,1\n2,1\n";
  write_text(folder / "t.csv", swapped);
  EXPECT_THROW(CsvFile(folder / "t.csv", kHeader, 10), UserError);
  EXPECT_THROW(CsvFile::check(folder / "t.csv", kHeader, 10), UserError);
  EXPECT_EQ(text_of(folder / "t.csv"), swapped);
  for (const char* bad : {"3zzz,1", "-5,1", "", ",1", "\x01"}) {
    write_text(folder / "t.csv", std::string("step,loss\n1,1\n2,1\n") + bad + "\n4,1\n");
    if (bad == std::string("-5,1")) {
      EXPECT_THROW(CsvFile(folder / "t.csv", kHeader, 10), UserError);
      continue;
    }
    const CsvFile csv(folder / "t.csv", kHeader, 10);
    EXPECT_EQ(csv.last_kept(), 2);
    EXPECT_EQ(text_of(folder / "t.csv"), "step,loss\n1,1\n2,1\n") << bad;
  }
}

TEST(Csv, AFullDiskIsAFault) {
  const TempFolder folder;
  CsvFile csv(folder / "t.csv", kHeader, 0);
  const std::string error = error_text<Fault>([&] {
    const FullDisk disk(100);
    csv.row(std::string(200, '1'));
  });
  EXPECT_TRUE(error.starts_with("[file] writing ")) << error;
}

TEST(Csv, AFolderThatIsMissingIsAFault) {
  const TempFolder folder;
  EXPECT_THROW(CsvFile(folder / "none/t.csv", kHeader, 0), Fault);
}

}  // namespace
}  // namespace tw::test
