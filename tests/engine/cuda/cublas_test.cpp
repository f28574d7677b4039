// cuBLAS can be loaded without a GPU.
#include "engine/cuda/cublas.h"

#include <gtest/gtest.h>

#include <string_view>

namespace tw {
namespace {

TEST(Cublas, HasTheFunctionsThatOpsCall) {
  const std::string_view text = cuda::cublas().status_string(CUBLAS_STATUS_NOT_SUPPORTED);
  EXPECT_TRUE(text.find("not supported") != text.npos) << text;
}

}  // namespace
}  // namespace tw
