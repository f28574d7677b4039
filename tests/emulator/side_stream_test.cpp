// Weight gradients of convolutions run on a second stream, beside later work, with the bits of one.
#include <gtest/gtest.h>

#include <algorithm>

#include "engine/device/graph.h"
#include "engine/ops/conv2d.h"
#include "tests/emulator/graph.h"
#include "tests/support/model_step.h"

namespace tw {
namespace {

std::unique_ptr<Graph> record(test::PlannedModel& p) {
  return Graph::record(p.ctx, [&] {
    p.model.queue_forward(p.pass);
    p.model.backward(p.pass);
  });
}

TEST(SideStream, HasTheWeightGradientsOfAllConvolutions) {
  test::PlannedModel p("resnet20", 2, DType::bf16);
  p.step();
  const auto graph = record(p);
  const std::vector<size_t>& lanes = emulator::graph_hooks().lanes;
  EXPECT_EQ(graph->size() - static_cast<size_t>(std::ranges::count(lanes, 0u)), 19u);
}

TEST(SideStream, GivesTheBitsOfOneStream) {
  test::PlannedModel p("resnet20", 2, DType::bf16);
  // a caller that reads each gradient at once has them on the first stream
  p.pass.on_gradient_ready = [](const Parameter&) {};
  const double loss = p.step();
  const auto expected = p.gradients();
  p.pass.on_gradient_ready = {};
  EXPECT_EQ(p.step(), loss);
  EXPECT_EQ(p.gradients(), expected) << "op by op";
  const auto graph = record(p);
  // at random, the emulator runs the second stream as late or as early as the graph allows
  for (int i = 0; i < 8; ++i) {
    graph->launch();
    EXPECT_EQ(p.gradients(), expected) << "launch " << i;
  }
}

TEST(SideStream, LeavesLargeGradientsToTheFirst) {
  Context ctx(Device::cuda);
  ctx.set_math({.deterministic = true});
  const auto create = [&](int64_t batch) {
    return ops::Conv2d::create(ctx, {.batch = batch,
                                     .height = 64,
                                     .width = 64,
                                     .in_channels = 4,
                                     .out_channels = 4,
                                     .kernel = 1,
                                     .padding = 0});
  };
  EXPECT_TRUE(create(16)->beside_bytes());
  EXPECT_FALSE(create(1024)->beside_bytes()) << "x and y have 64 MiB each";
}

}  // namespace
}  // namespace tw
