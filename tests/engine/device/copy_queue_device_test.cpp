// Copies run in order, and in order with the context's work where that is asked for.
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/device/copy_queue.h"
#include "engine/ops/vector.h"
#include "tests/support/owned_tensor.h"

namespace tw {
namespace {

using test::OwnedTensor;

constexpr int64_t kFloats = 100000;

TEST(Pinned, IsZeroedHostMemory) {
  const Buffer buffer = Buffer::pinned(test::device(), 1000);
  ASSERT_EQ(buffer.bytes(), 1000u);
  for (const std::byte byte : buffer.as<std::byte>()) EXPECT_EQ(byte, std::byte{0});
  EXPECT_EQ(buffer.tensor({10}, DType::f32).device, Device::cpu);
  const Context ctx(test::device());
  EXPECT_EQ(device_of(ctx, buffer.data()), Device::cpu);
}

TEST(Memory, HostAndDeviceAreDistinguished) {
  const Context ctx(test::device());
  const std::vector<float> host(100);
  const Buffer device(test::device(), 100);
  EXPECT_EQ(device_of(ctx, host.data()), Device::cpu);
  EXPECT_EQ(device_of(ctx, device.data()), test::device());
}

TEST(CopyQueue, StreamsBlocksThroughTwoSlots) {
  Context ctx(test::device());
  const auto copies = CopyQueue::create(ctx);
  const Buffer host = Buffer::pinned(test::device(), 2 * kFloats * sizeof(float));
  OwnedTensor device({2, kFloats}, DType::f32);
  OwnedTensor sum({kFloats}, DType::f32);
  constexpr int kBatches = 9;
  for (int j = 0; j < kBatches; ++j) {
    const auto slot = static_cast<size_t>(j % 2);
    const auto from = host.as<float>().subspan(slot * kFloats, kFloats);
    const auto to = device.floats().subspan(slot * kFloats, kFloats);
    copies->wait(j % 2);  // until the earlier copy from these floats is done
    std::ranges::fill(from, static_cast<float>(1 << j));
    copies->wait_for(ctx);  // which still reads the earlier block
    copies->copy(from.data(), to.data(), to.size_bytes());
    copies->record(j % 2);
    copies->make_wait(ctx);
    ops::add(ctx, to, sum.floats());
  }
  ctx.synchronize();
  for (const double x : sum.get()) ASSERT_EQ(x, (1 << kBatches) - 1);
}

TEST(CopyQueue, CopiesResultsOfTheContext) {
  Context ctx(test::device());
  const auto copies = CopyQueue::create(ctx);
  OwnedTensor x({kFloats}, DType::f32, std::vector<double>(kFloats, 1.0)), y({kFloats}, DType::f32);
  for (int i = 0; i < 5; ++i) ops::add(ctx, x.floats(), y.floats());
  const Buffer host = Buffer::pinned(test::device(), kFloats * sizeof(float));
  copies->wait_for(ctx);
  copies->copy(y.floats().data(), host.data(), host.bytes());
  copies->record(0);
  copies->wait(0);
  for (const float value : host.as<float>()) ASSERT_EQ(value, 5.0f);
}

}  // namespace
}  // namespace tw
