// The memory plan: tensors alive at the same time do not overlap, and little memory is wasted.
#include "engine/plan/planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/core/rng.h"

namespace tw::test {
namespace {

struct Use {
  TensorRef ref;
  int first, last;
  bool persistent;
};

bool overlap(const Tensor& a, const Tensor& b) {
  const auto* x = static_cast<const std::byte*>(a.data);
  const auto* y = static_cast<const std::byte*>(b.data);
  return x < y + b.bytes() && y < x + a.bytes();
}

bool together(const Use& a, const Use& b) {
  return a.persistent || b.persistent || (a.first <= b.last && b.first <= a.last);
}

/// A plan of random tensors: sizes of many scales (zero included), lives of any length.
class RandomPlan : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomPlan, NeverOverlapsTwoLiveTensors) {
  constexpr uint32_t kTensors = 40, kOperations = 30;
  const Philox philox(GetParam(), Purpose::test);
  Context ctx;
  Planner planner(ctx, DType::f32);
  std::vector<Use> uses;
  size_t sum = 0;
  for (uint32_t i = 0; i < kTensors; ++i) {
    const auto bits = philox(i);
    const Shape shape{below(bits[0], 1u << below(bits[1], 13))};
    const DType dtype = bits[3] % 2 ? DType::u8 : DType::f32;
    const bool persistent = below(bits[2], 8) == 0;
    const TensorRef ref =
        persistent ? planner.persistent(shape, dtype) : planner.make(shape, dtype);
    const auto when = philox(i, 1);
    const int a = static_cast<int>(below(when[0], kOperations));
    const int b = std::min<int>(kOperations - 1, a + static_cast<int>(below(when[1], 12)));
    uses.push_back({ref, a, b, persistent});
    sum += (ref->bytes() + 255) / 256 * 256;
  }
  for (int now = 0; now < static_cast<int>(kOperations); ++now) {
    // one operation uses all tensors whose lifetime starts or ends there
    std::vector<TensorRef> named;
    for (const Use& use : uses)
      if (use.first == now || use.last == now) named.push_back(use.ref);
    named.resize(kTensors);  // empty references do not matter
    planner.use({named[0],  named[1],  named[2],  named[3],  named[4],  named[5],  named[6],
                 named[7],  named[8],  named[9],  named[10], named[11], named[12], named[13],
                 named[14], named[15], named[16], named[17], named[18], named[19]});
    ASSERT_FALSE(named[20]) << "the test names at most 20 tensors in one operation";
  }

  const Planner::Memory memory = planner.layout();
  planner.commit();
  EXPECT_LE(memory.total(), sum);
  size_t alive = 0;  // no plan can be smaller than the tensors alive at one time
  for (int now = 0; now < static_cast<int>(kOperations); ++now) {
    size_t bytes = 0;
    for (const Use& use : uses)
      if (!use.persistent && use.first <= now && now <= use.last) bytes += use.ref->bytes();
    alive = std::max(alive, bytes);
  }
  EXPECT_GE(memory.workspace, alive);
  const std::byte* const end = ctx.scratch().data();  // scratch comes last
  for (const Use& a : uses) {
    const auto* data = static_cast<const std::byte*>(a.ref->data);
    EXPECT_EQ((data - (end - memory.total())) % 256, 0);
    EXPECT_GE(data, end - memory.total());
    EXPECT_LE(data + a.ref->bytes(), end);
    for (const Use& b : uses) {
      const bool meet = a.ref != b.ref && together(a, b) && overlap(*a.ref, *b.ref);
      ASSERT_FALSE(meet) << &a - uses.data() << " and " << &b - uses.data();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomPlan, testing::Range(uint64_t{0}, uint64_t{50}));

TEST(Planner, AChainOfEqualTensorsTakesTheMemoryOfTwo) {
  Context ctx;
  Planner planner(ctx, DType::bf16);
  TensorRef previous = planner.make({1024});
  for (int i = 0; i < 20; ++i) {
    const TensorRef next = planner.make({1024});
    planner.use({previous, next});
    previous = next;
  }
  EXPECT_EQ(planner.layout().workspace, 2u * 1024 * size_of(DType::bf16));
}

TEST(Planner, FillsAGapThatIsJustLargeEnough) {
  Context ctx;
  Planner planner(ctx, DType::u8);
  const TensorRef below = planner.make({1280}), gap = planner.make({512}),
                  above = planner.make({256});
  const TensorRef late = planner.make({512});
  planner.use({below, gap, above});
  planner.use({below, above, late});  // gap is dead: late takes its place
  EXPECT_EQ(planner.layout().workspace, 1280u + 512u + 256u);
  planner.commit();
  EXPECT_EQ(gap->data, late->data);
}

TEST(Planner, AnOperationsInputAndOutputNeverShare) {
  Context ctx;
  Planner planner(ctx, DType::f32);
  const TensorRef in = planner.make({16}), out = planner.make({16});
  planner.use({in});
  planner.use({in, out});
  planner.commit();
  EXPECT_FALSE(overlap(*in, *out));
}

TEST(Planner, AnOperationBesideOthersSharesNoMemoryWithThem) {
  Context ctx;
  Planner planner(ctx, DType::u8);
  const auto make = [&] { return planner.make({256}); };
  const TensorRef x = make(), dy = make(), own = make(), dx = make(), next = make(), late = make();
  planner.use({x, dy});
  planner.use_beside({x, dy, own});
  planner.use({dy, dx});
  planner.use({dx, next});  // x and dy would be dead here
  planner.join();
  planner.use({next, late});
  planner.commit();
  for (const TensorRef& beside : {x, dy, own})
    for (const TensorRef& other : {dx, next}) EXPECT_FALSE(overlap(*beside, *other));
  EXPECT_EQ(planner.layout().workspace, 5u * 256) << "late takes the place of a dead tensor";
}

TEST(Planner, ScratchIsTheLargestRequestAndSeparate) {
  Context ctx;
  Planner planner(ctx, DType::f32);
  const TensorRef a = planner.make({16}), keeps = planner.persistent({16}, DType::f32);
  planner.use({a, keeps});
  planner.scratch(1000);
  planner.scratch(10);
  planner.commit();
  ASSERT_GE(ctx.scratch().size(), 1000u);
  const Tensor scratch{ctx.scratch().data(), {1000}, DType::u8};
  EXPECT_FALSE(overlap(scratch, *a));
  EXPECT_FALSE(overlap(scratch, *keeps));
}

TEST(Planner, LayoutIsRepeatable) {
  Context ctx;
  Planner planner(ctx, DType::f32);
  planner.use({planner.make({100}), planner.persistent({10}, DType::u8)});
  planner.scratch(100);
  const Planner::Memory once = planner.layout(), twice = planner.layout();
  EXPECT_EQ(once.total(), twice.total());
  EXPECT_EQ(once.persistent, 256u);
}

TEST(Planner, AnUnusedTensorTakesNoMemory) {
  Context ctx;
  Planner planner(ctx, DType::f32);
  const TensorRef never = planner.make({1 << 20});
  EXPECT_EQ(planner.layout().total(), 0u);
  planner.commit();
  EXPECT_EQ(never->data, nullptr);
  EXPECT_FALSE(TensorRef());
}

}  // namespace
}  // namespace tw::test
