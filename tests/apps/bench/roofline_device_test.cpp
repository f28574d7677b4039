// The lower bound of a step's time: the products of the published networks, and measured rates.
#include "apps/bench/roofline.h"
#include "tests/support/device.h"
#include "tests/support/owned_tensor.h"

namespace tw {
namespace {

/// torchvision publishes multiply-adds of a forward pass, in billions, of one image.
struct Published {
  const char* model;
  double forward, first;  ///< the first convolution has no gradient of its input
};

TEST(Roofline, ProductsMatchThePublishedNetworks) {
  for (const auto& [name, forward, first] :
       {Published{"resnet18", 1.814, 0.118}, Published{"resnet50", 4.089, 0.118},
        Published{"vgg16_imagenet", 15.470, 0.0867}, Published{"alexnet", 0.714, 0.0703}}) {
    Context ctx;
    Model model(name, {.image = {224, 224, 3}, .classes = 1000});
    constexpr int64_t batch = 2;
    model.plan(ctx, {.batch = batch});
    int64_t flops = 0;
    for (const Planner::Product& product : model.planner().products()) flops += product.flops;
    EXPECT_NEAR(static_cast<double>(flops) / batch / 2e9, 3 * forward - first, 0.005 * forward)
        << name;
  }
}

TEST(Roofline, ProductTakesTheLongerOfItsOperationsAndBytes) {
  Context ctx;
  Model model("resnet20", {.image = {32, 32, 3}, .classes = 10});
  model.plan(ctx, {.batch = 8});
  double flops = 0, bytes = 20.0 * static_cast<double>(model.arena().size());
  for (const Planner::Product& product : model.planner().products()) {
    flops += static_cast<double>(product.flops);
    bytes += static_cast<double>(product.bytes);
  }
  EXPECT_NEAR(floor_seconds(model, {.flops = 1e9, .bytes = 1e30}), flops * 1e-9, flops * 1e-15);
  EXPECT_NEAR(floor_seconds(model, {.flops = 1e30, .bytes = 1e9}), bytes * 1e-9, bytes * 1e-15);
  const double both = floor_seconds(model, {.flops = 1e9, .bytes = 1e9});
  EXPECT_GT(both, std::max(flops, bytes) * 1e-9 * (1 - 1e-12));
  EXPECT_LT(both, (flops + bytes) * 1e-9);
}

TEST(Roofline, RatesAreMeasuredOnTheDevice) {
  Context ctx(test::device());
  for (const DType dtype : {DType::f32, DType::bf16}) {
    const Ceilings ceilings = measure_ceilings(ctx, dtype, 64, 1 << 16);
    EXPECT_GT(ceilings.flops, 1e5);
    EXPECT_GT(ceilings.bytes, 1e5);
  }
}

}  // namespace
}  // namespace tw
