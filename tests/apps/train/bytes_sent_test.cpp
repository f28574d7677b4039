// Bytes sent per entry of real gradients.
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(WireBytes, PackedIndicesAndBf16TakeAtMost3Point6BytesPerEntry) {
  const char* data = std::getenv("THINWIRE_DATA");
  if (data == nullptr) GTEST_SKIP() << "THINWIRE_DATA is not set";
  constexpr int kRanks = 4;
  constexpr double kParameters = 269'722, kDensity = 0.001;
  const TempFolder folder;
  run_well(fmt::format(
      "{} --model resnet20 --dataset cifar10 --data-dir {} --workers {} --batch-size 32 "
      "--sparsifier topk --density {} --density-warmup \"\" --set wire.values=bf16 --set "
      "wire.indices=packed --max-steps 40 --epochs 1 --eval-every 100 --output-dir {} --name run",
      TW_TRAIN, data, kRanks, kDensity, folder.path().string()));

  std::istringstream rows(text_of(folder / "run/steps.csv"));
  std::string row;
  std::getline(rows, row);
  ASSERT_TRUE(row.find(",nnz_over_k,bytes_sent,") != std::string::npos) << row;
  double entries = 0, bytes = 0;
  int steps = 0;
  for (; std::getline(rows, row); ++steps) {
    std::istringstream cells(row);
    std::string cell;
    for (int i = 0; std::getline(cells, cell, ',') && i < 10; ++i) {
      // every rank's entries are sent to the three others
      if (i == 8) entries += std::stod(cell) * std::floor(kDensity * kParameters) * kRanks * 3;
      if (i == 9) bytes += std::stod(cell);
    }
  }
  EXPECT_EQ(steps, 40);
  const double headers = 40.0 * 3 * 24 * kRanks, each = (bytes - headers) / entries;
  printf("%.3f bytes an entry\n", each);
  EXPECT_LE(each, 3.6);
  EXPECT_GE(each, 2);
}

}  // namespace
}  // namespace tw::test
