// cuDNN builds plans for a GPU from its description, so the plans for all networks can be checked
// on a machine without a GPU.
#include "engine/cuda/cudnn_plan.h"

#include <gtest/gtest.h>

#include <string_view>

#include "engine/core/error.h"

namespace tw {
namespace {

using cudnn::Convolution, cudnn::ConvPlan, cudnn::ConvPass;

/// The description of an H200 in cuDNN's format.
constexpr std::string_view kDevice = R"({
  "deviceName": "NVIDIA H200", "name": "NVIDIA H200", "cudaDeviceId": 0, "pciDeviceId": 0,
  "deviceVer": 900, "driverVer": 13000, "multiProcessorCount": 132, "warpSize": 32,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
  "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
  "regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
  "totalGlobalMem": 150000000000, "isTccDriver": 0, "supportCoopLaunch": 1})";

cudnn::Descriptor described_device() {
  cudnn::Descriptor device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  device.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, std::ssize(kDevice),
             kDevice.data());
  device.finalize();
  return device;
}

Convolution convolution(ConvPass pass, DType dtype, int64_t batch, int64_t side, int64_t in,
                        int64_t out, int64_t kernel, int64_t stride, int64_t padding) {
  const int64_t small = (side + 2 * padding - kernel) / stride + 1;
  return {.pass = pass,
          .x = {batch, in, side, side},
          .w = {out, in, kernel, kernel},
          .y = {batch, out, small, small},
          .x_type = dtype,
          .w_type = dtype,
          .y_type = dtype,
          .stride = stride,
          .padding = padding};
}

class CudnnPlan : public testing::TestWithParam<DType> {};

TEST_P(CudnnPlan, ExistsForLayersOfEveryNetwork) {
  struct Layer {
    int64_t batch, side, in, out, kernel = 3, stride = 1, padding = 1;
  };
  const cudnn::Descriptor device = described_device();
  for (const Layer l : {Layer{128, 32, 3, 16},
                        {128, 32, 16, 16},
                        {128, 32, 16, 32, 3, 2},
                        {128, 8, 64, 64},
                        {128, 2, 512, 512},
                        {32, 224, 3, 64, 7, 2, 3},
                        {32, 56, 64, 256, 1, 1, 0},
                        {32, 56, 256, 512, 1, 2, 0},
                        {3, 9, 16, 17, 5, 2, 2},
                        {1, 7, 1, 16}})
    for (const ConvPass pass :
         {ConvPass::forward, ConvPass::backward_data, ConvPass::backward_filter})
      for (const bool deterministic : {false, true}) {
        const Convolution c = convolution(pass, GetParam(), l.batch, l.side, l.in, l.out, l.kernel,
                                          l.stride, l.padding);
        SCOPED_TRACE(c.text());
        std::string first;
        cudnn::for_each_plan({.device = &device}, c, {.deterministic = deterministic},
                             [&](ConvPlan plan) {
                               first = plan.text();
                               return false;
                             });
        EXPECT_TRUE(first.starts_with("engine ")) << first;
      }
}

TEST_P(CudnnPlan, CandidatesHaveDistinctTexts) {
  const cudnn::Descriptor device = described_device();
  const Convolution c = convolution(ConvPass::forward, GetParam(), 128, 32, 16, 16, 3, 1, 1);
  std::vector<std::string> texts;
  const auto collect = [&](ConvPlan plan) {
    texts.push_back(plan.text());
    return true;
  };
  cudnn::for_each_plan({.device = &device}, c, {}, collect);
  const std::vector<std::string> first = texts;
  EXPECT_GT(first.size(), 3u);
  texts.clear();
  cudnn::for_each_plan({.device = &device}, c, {}, collect);
  EXPECT_EQ(texts, first);
}

TEST(CudnnPlanLimits, Fp32UsesNoTensorCoresUnlessAllowed) {
  const cudnn::Descriptor device = described_device();
  const Convolution c = convolution(ConvPass::forward, DType::f32, 128, 32, 64, 64, 3, 1, 1);
  const auto count = [&](const cudnn::Limits& limits) {
    size_t plans = 0;
    cudnn::for_each_plan({.device = &device}, c, limits, [&](ConvPlan) { return ++plans > 0; });
    return plans;
  };
  EXPECT_LT(count({.tf32 = false}), count({.tf32 = true}));
  EXPECT_LE(count({.workspace = 0}), count({}));
}

INSTANTIATE_TEST_SUITE_P(DTypes, CudnnPlan, testing::Values(DType::f32, DType::bf16),
                         [](const auto& param) { return std::string(name(param.param)); });

}  // namespace
}  // namespace tw
