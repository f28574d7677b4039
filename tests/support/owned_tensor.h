// Tensors that own memory on the device under test, set and read as doubles, for comparisons with
// naive references.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/context.h"
#include "engine/core/copy.h"
#include "engine/core/rng.h"
#include "tests/support/device.h"

namespace tw::test {

/// Waits for the device, then copies between host and device.
inline void copy_now(const Tensor& from, const Tensor& to) {
  static Context ctx(device());
  wait_for_device();
  copy(ctx, from, to);
}

class OwnedTensor {
 public:
  OwnedTensor(Shape shape, DType dtype)
      : buffer_(device(), static_cast<size_t>(shape.numel()) * size_of(dtype)),
        tensor_(buffer_.tensor(shape, dtype)) {}
  OwnedTensor(Shape shape, DType dtype, const std::vector<double>& values)
      : OwnedTensor(shape, dtype) {
    set(values);
  }

  operator const Tensor&() const { return tensor_; }
  const Tensor* operator->() const { return &tensor_; }
  /// Device memory, for ops on flat vectors.
  std::span<float> floats() const { return tensor_.as<float>(); }

  /// Rounds to the dtype.
  void set(const std::vector<double>& values) {
    ASSERT_EQ(values.size(), static_cast<size_t>(tensor_.numel()));
    std::vector<std::byte> host(tensor_.bytes());
    with_elements(host, [&](auto elements) {
      using T = typename decltype(elements)::value_type;
      for (size_t i = 0; i < values.size(); ++i)
        elements[i] = static_cast<T>(static_cast<float>(values[i]));
    });
    set_bits(host);
  }

  std::vector<double> get() const {
    std::vector<double> values(static_cast<size_t>(tensor_.numel()));
    std::vector<std::byte> host = bits();
    with_elements(host, [&](auto elements) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(elements[i]);
    });
    return values;
  }

  /// The bytes, for bitwise comparisons.
  std::vector<std::byte> bits() const {
    std::vector<std::byte> host(tensor_.bytes());
    copy_now(tensor_, on_host(host));
    return host;
  }
  void set_bits(std::vector<std::byte>& host) { copy_now(on_host(host), tensor_); }

 private:
  Tensor on_host(std::vector<std::byte>& host) const {
    return {host.data(), tensor_.shape, tensor_.dtype, Device::cpu};
  }

  template <class Body>
  void with_elements(std::vector<std::byte>& host, const Body& body) const {
    const Tensor t = on_host(host);
    if (t.dtype == DType::f32) body(t.as<float>());
    if (t.dtype == DType::bf16) body(t.as<bf16>());
    if (t.dtype == DType::i32) body(t.as<int32_t>());
    if (t.dtype == DType::u8) body(t.as<uint8_t>());
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

/// Relative error of rounding a result to the dtype, with a margin for sums in f32.
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
