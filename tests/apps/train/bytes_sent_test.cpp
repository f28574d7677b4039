// Bytes sent per entry of real gradients.
#include <cmath>
#include <cstdlib>

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

  const auto sent = table_column(folder / "run/steps.csv", "nnz_over_k"),
             bytes_sent = table_column(folder / "run/steps.csv", "bytes_sent");
  EXPECT_EQ(sent.size(), 40u);
  double entries = 0, bytes = 0;
  // every rank's entries are sent to the three others
  for (const double of : sent) entries += of * std::floor(kDensity * kParameters) * kRanks * 3;
  for (const double of : bytes_sent) bytes += of;
  const double headers = 40.0 * 3 * 24 * kRanks, each = (bytes - headers) / entries;
  printf("%.3f bytes an entry\n", each);
  EXPECT_LE(each, 3.6);
  EXPECT_GE(each, 2);
}

}  // namespace
}  // namespace tw::test
