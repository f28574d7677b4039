// The table that train prints at the end of a run.
#include <fstream>

#include "apps/train/summary.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

TEST(Summary, TheTableOfTheEndPrintsCellsThatAreNoNumbers) {
  const TempFolder folder;
  std::ofstream(folder / "t.csv") << ("epoch,lr\n1,0.123456789\n2,damaged,more\n3\n");
  testing::internal::CaptureStdout();
  Console console(true);
  print_table(console, folder / "t.csv");
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_NE(printed.find("     0.123457\n"), printed.npos) << printed;
  EXPECT_NE(printed.find("            2      damaged\n"), printed.npos) << printed;
}

TEST(Summary, ATableWithoutRowsIsNotPrinted) {
  const TempFolder folder;
  std::ofstream(folder / "t.csv") << "epoch,lr\n";
  testing::internal::CaptureStdout();
  Console console(true);
  print_table(console, folder / "t.csv");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
}

}  // namespace
}  // namespace tw::test
