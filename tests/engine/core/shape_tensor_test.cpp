// Shapes, tensor views and the buffers below them.
#include <gtest/gtest.h>

#include <cstdint>

#include "engine/core/buffer.h"
#include "engine/core/error.h"

namespace tw::test {
namespace {

TEST(Shape, CountsAndPrints) {
  EXPECT_EQ(Shape().numel(), 1);
  EXPECT_EQ(Shape().str(), "()");
  EXPECT_EQ(Shape({7}).str(), "(7)");
  EXPECT_EQ(Shape({8, 32, 32, 16}).numel(), 8 * 32 * 32 * 16);
  EXPECT_EQ(Shape({8, 32, 32, 16}).str(), "(8, 32, 32, 16)");
  EXPECT_EQ(Shape({8, 0, 32}).numel(), 0);
  EXPECT_EQ(Shape({1 << 20, 1 << 20}).numel(), int64_t{1} << 40);
}

TEST(Shape, EqualMeansSameRankAndDimensions) {
  EXPECT_EQ(Shape({2, 3}), Shape({2, 3}));
  EXPECT_NE(Shape({2, 3}), Shape({3, 2}));
  EXPECT_NE(Shape({2}), Shape({2, 0}));
  EXPECT_NE(Shape(), Shape({0}));
}

TEST(Shape, MoreThanFourDimensionsThrow) { EXPECT_THROW(Shape({1, 2, 3, 4, 5}), std::logic_error); }

TEST(Buffer, IsZeroedAndAligned) {
  for (const size_t bytes : {size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{100'000}}) {
    const Buffer buffer(Device::cpu, bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer.data()) % 64, 0u);
    EXPECT_EQ(buffer.bytes(), bytes);
    for (const std::byte b : buffer.as<std::byte>()) ASSERT_EQ(b, std::byte{0});
  }
}

TEST(Buffer, OfZeroBytesHasNoMemory) {
  const Buffer none, empty(Device::cpu, 0);
  EXPECT_EQ(none.bytes(), 0u);
  EXPECT_TRUE(empty.as<float>().empty());
  EXPECT_EQ(empty.tensor({0}, DType::f32).bytes(), 0u);
}

TEST(Buffer, ThrowsWhenMemoryIsExhausted) {
  EXPECT_THROW(Buffer(Device::cpu, SIZE_MAX), Fault);  // rounding up must not wrap to zero
#ifndef TW_SANITIZED  // a sanitizer ends the program at such a size
  EXPECT_THROW(Buffer(Device::cpu, size_t{1} << 60), Fault);
#endif
}

TEST(Buffer, TensorsStayInside) {
  const Buffer buffer(Device::cpu, 16);
  EXPECT_EQ(buffer.tensor({2}, DType::f32, 8).data, buffer.data() + 8);
  EXPECT_THROW(buffer.tensor({3}, DType::f32, 8), std::logic_error);
  EXPECT_THROW(buffer.tensor({0}, DType::f32, 17), std::logic_error);
  // negative counts wrap around as sizes do
  EXPECT_THROW(buffer.tensor({-1}, DType::f32, 8), std::logic_error);
}

TEST(Buffer, IsEmptyAfterAMove) {
  Buffer from(Device::cpu, 16);
  const Buffer to = std::move(from);
  EXPECT_EQ(to.bytes(), 16u);
  EXPECT_TRUE(from.as<float>().empty());  // NOLINT: this is the point
}

TEST(Tensor, ReadsOnlyAsItsOwnType) {
  const Buffer buffer(Device::cpu, 16);
  const Tensor tensor = buffer.tensor({4}, DType::f32);
  EXPECT_EQ(tensor.as<float>().size(), 4u);
  EXPECT_THROW(tensor.as<int32_t>(), std::logic_error);  // same size, other type
  EXPECT_THROW(tensor.as<bf16>(), std::logic_error);
}

TEST(Tensor, ViewRequiresEqualNumel) {
  const Buffer buffer(Device::cpu, 24);
  const Tensor tensor = buffer.tensor({2, 3}, DType::f32);
  EXPECT_EQ(tensor.view({3, 2}).shape, Shape({3, 2}));
  EXPECT_EQ(tensor.view({3, 2}).data, tensor.data);
  EXPECT_THROW(tensor.view({3, 3}), std::logic_error);
}

TEST(Tensor, RowsAreASliceOfTheFirstDimension) {
  const Buffer buffer(Device::cpu, 24);
  const Tensor tensor = buffer.tensor({4, 3}, DType::bf16);
  const Tensor part = tensor.rows(1, 3);
  EXPECT_EQ(part.shape, Shape({2, 3}));
  EXPECT_EQ(part.data, buffer.data() + 6);
  EXPECT_EQ(tensor.rows(4, 4).numel(), 0);
  EXPECT_THROW(tensor.rows(3, 5), std::logic_error);
  EXPECT_THROW(tensor.rows(-1, 2), std::logic_error);
  EXPECT_THROW(tensor.rows(3, 2), std::logic_error);
  EXPECT_EQ(Tensor({nullptr, {0, 3}}).rows(0, 0).numel(), 0);
}

}  // namespace
}  // namespace tw::test
