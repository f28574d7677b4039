#include <gtest/gtest.h>

#include <limits>

#include "engine/ops/nonfinite.h"
#include "tests/support/owned_tensor.h"

namespace tw::test {
namespace {

TEST(FirstNonfinite, IsTheLowestIndex) {
  for (const int threads : {1, 2}) {
    Context ctx(device(), threads);
    std::vector<double> x = normal_values(200'000, 1);
    const auto first = [&] {
      const OwnedTensor tensor({200'000}, DType::f32, x);
      return ops::first_nonfinite(ctx, tensor.floats());
    };
    x[3] = std::numeric_limits<float>::max();
    x[4] = std::numeric_limits<float>::denorm_min();
    EXPECT_EQ(first(), x.size());
    x[199'999] = -std::numeric_limits<double>::infinity();
    EXPECT_EQ(first(), 199'999u);
    x[70'001] = std::nan("");
    x[150'000] = std::nan("");
    EXPECT_EQ(first(), 70'001u);
    x[0] = std::numeric_limits<double>::infinity();
    EXPECT_EQ(first(), 0u);
    EXPECT_EQ(ops::first_nonfinite(ctx, {}), 0u);
  }
}

}  // namespace
}  // namespace tw::test
