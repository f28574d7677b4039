// Tensors that own their memory, filled and read as doubles, for tests against naive references.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/buffer.h"
#include "engine/context.h"
#include "engine/rng.h"

namespace tw::test {

class OwnedTensor {
 public:
  OwnedTensor(Shape shape, DType dtype)
      : buffer_(Device::cpu, static_cast<size_t>(shape.numel()) * size_of(dtype)),
        tensor_(buffer_.tensor(shape, dtype)) {}
  OwnedTensor(Shape shape, DType dtype, const std::vector<double>& values)
      : OwnedTensor(shape, dtype) {
    set(values);
  }

  operator const Tensor&() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }

  /// Rounds to the dtype.
  void set(const std::vector<double>& values) {
    ASSERT_EQ(values.size(), static_cast<size_t>(tensor_.numel()));
    with_elements([&](auto elements) {
      using T = typename decltype(elements)::value_type;
      for (size_t i = 0; i < values.size(); ++i)
        elements[i] = static_cast<T>(static_cast<float>(values[i]));
    });
  }

  std::vector<double> get() const {
    std::vector<double> values(static_cast<size_t>(tensor_.numel()));
    with_elements([&](auto elements) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(elements[i]);
    });
    return values;
  }

  /// The bytes, for comparisons bit by bit.
  std::vector<std::byte> bits() const { return {buffer_.data(), buffer_.data() + tensor_.bytes()}; }

 private:
  template <class Body>
  void with_elements(const Body& body) const {
    if (tensor_.dtype == DType::f32) body(tensor_.as<float>());
    if (tensor_.dtype == DType::bf16) body(tensor_.as<bf16>());
    if (tensor_.dtype == DType::i32) body(tensor_.as<int32_t>());
    if (tensor_.dtype == DType::u8) body(tensor_.as<uint8_t>());
  }

  Buffer buffer_;
  Tensor tensor_;
};

/// Standard normal values; different for each `id`.
inline std::vector<double> normal_values(int64_t n, uint64_t id) {
  const Philox philox(17, Purpose::test);
  std::vector<double> values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto words = philox(id, static_cast<uint32_t>(i / 2));
    values[i] = normal(words[0], words[1])[i % 2];
  }
  return values;
}

inline OwnedTensor normal_tensor(Shape shape, DType dtype, uint64_t id) {
  return {shape, dtype, normal_values(shape.numel(), id)};
}

/// Each element within `absolute` + `relative` * abs(expected).
inline void expect_close(const std::vector<double>& actual, const std::vector<double>& expected,
                         double relative, double absolute) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    const bool close =
        std::abs(actual[i] - expected[i]) <= absolute + relative * std::abs(expected[i]);
    if (!close) FAIL() << "element " << i << ": " << actual[i] << ", expected " << expected[i];
  }
}

/// Relative error that rounding a result to the dtype may cause, with room for fp32 sums.
inline double tolerance(DType dtype) { return dtype == DType::bf16 ? 0x1p-8 : 2e-5; }

/// d loss / d x by central differences, in double.
inline std::vector<double> numeric_gradient(
    std::vector<double> x, const std::function<double(const std::vector<double>&)>& loss,
    double h = 1e-5) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double kept = x[i];
    x[i] = kept + h;
    const double above = loss(x);
    x[i] = kept - h;
    gradient[i] = (above - loss(x)) / (2 * h);
    x[i] = kept;
  }
  return gradient;
}

}  // namespace tw::test
