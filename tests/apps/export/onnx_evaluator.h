// Computes what an ONNX file describes, by plain loops, for the operators that export writes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "tests/apps/export/onnx_reader.h"

namespace tw::test {

/// Images are (N, C, H, W).
struct OnnxArray {
  std::vector<int64_t> sizes;
  std::vector<float> values;

  explicit OnnxArray(std::vector<int64_t> shape = {})
      : sizes(std::move(shape)), values(static_cast<size_t>(product(sizes))) {}
  static int64_t product(const std::vector<int64_t>& sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
  }
  float& at(int64_t n, int64_t c, int64_t y, int64_t x) {
    return values[static_cast<size_t>(((n * sizes[1] + c) * sizes[2] + y) * sizes[3] + x)];
  }
  float at(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return const_cast<OnnxArray*>(this)->at(n, c, y, x);
  }
  bool has(int64_t y, int64_t x) const { return y >= 0 && y < sizes[2] && x >= 0 && x < sizes[3]; }
};

class OnnxEvaluator {
 public:
  explicit OnnxEvaluator(const OnnxReader& file) : file_(file) {
    for (const auto& [name, tensor] : file.tensors) {
      if (tensor.type != 1) continue;
      OnnxArray& array = known_[name] = OnnxArray(tensor.sizes);
      EXPECT_EQ(tensor.data.size(), array.values.size() * sizeof(float)) << name;
      if (testing::Test::HasFailure()) return;
      std::memcpy(array.values.data(), tensor.data.data(), tensor.data.size());
    }
  }

  OnnxArray output(const OnnxArray& input) {
    known_[file_.input] = input;
    for (const OnnxReader::Node& node : file_.nodes) known_[node.output] = result_of(node);
    return known_.at(file_.output);
  }

 private:
  using Node = OnnxReader::Node;
  /// Visits the positions of a window over the image of `x`, from a corner that may lie outside.
  struct Window {
    explicit Window(const Node& node)
        : kernel(node.list("kernel_shape")),
          strides(node.list("strides", {1, 1})),
          pads(node.list("pads", {0, 0, 0, 0})) {}
    std::vector<int64_t> sizes_over(const OnnxArray& x, int64_t channels) const {
      return {x.sizes[0], channels, (x.sizes[2] + pads[0] + pads[2] - kernel[0]) / strides[0] + 1,
              (x.sizes[3] + pads[1] + pads[3] - kernel[1]) / strides[1] + 1};
    }
    template <class Visit>
    void visit(int64_t y, int64_t x, const Visit& at) const {
      for (int64_t dy = 0; dy < kernel[0]; ++dy)
        for (int64_t dx = 0; dx < kernel[1]; ++dx)
          at(y * strides[0] - pads[0] + dy, x * strides[1] - pads[1] + dx, dy, dx);
    }
    std::vector<int64_t> kernel, strides, pads;
  };

  OnnxArray result_of(const Node& node) {
    const OnnxArray& x = known_.at(node.inputs[0]);
    if (node.type == "Conv") return conv(node, x);
    if (node.type == "MaxPool") return max_pool(node, x);
    if (node.type == "Gemm") return gemm(node, x);
    if (node.type == "BatchNormalization") return batch_norm(node, x);
    if (node.type == "Slice") return slice(node, x);
    if (node.type == "Pad") return pad(node, x);
    OnnxArray y = x;
    if (node.type == "Relu") {
      for (float& value : y.values) value = std::max(0.0f, value);
    } else if (node.type == "Add") {
      const OnnxArray& other = known_.at(node.inputs[1]);
      EXPECT_EQ(other.sizes, x.sizes) << node.output;
      for (size_t i = 0; i < y.values.size(); ++i) y.values[i] += other.values[i];
    } else if (node.type == "GlobalAveragePool") {
      y = OnnxArray({x.sizes[0], x.sizes[1], 1, 1});
      const size_t pixels = static_cast<size_t>(x.sizes[2] * x.sizes[3]);
      for (size_t i = 0; i < x.values.size(); ++i)
        y.values[i / pixels] += x.values[i] / static_cast<float>(pixels);
    } else if (node.type == "Flatten") {
      EXPECT_EQ(node.list("axis"), std::vector<int64_t>{1}) << node.output;
      y.sizes = {x.sizes[0], std::ssize(x.values) / x.sizes[0]};
    } else {
      ADD_FAILURE() << "unknown operator " << node.type;
    }
    return y;
  }

  OnnxArray conv(const Node& node, const OnnxArray& x) {
    const OnnxArray& w = known_.at(node.inputs[1]);
    const Window window(node);
    OnnxArray y(window.sizes_over(x, w.sizes[0]));
    for_each(y, [&](int64_t n, int64_t o, int64_t row, int64_t column, float& value) {
      if (node.inputs.size() > 2) value = known_.at(node.inputs[2]).values[static_cast<size_t>(o)];
      window.visit(row, column, [&](int64_t at_y, int64_t at_x, int64_t dy, int64_t dx) {
        if (!x.has(at_y, at_x)) return;
        for (int64_t c = 0; c < x.sizes[1]; ++c)
          value += x.at(n, c, at_y, at_x) * w.at(o, c, dy, dx);
      });
    });
    return y;
  }

  static OnnxArray max_pool(const Node& node, const OnnxArray& x) {
    const Window window(node);
    OnnxArray y(window.sizes_over(x, x.sizes[1]));
    for_each(y, [&](int64_t n, int64_t c, int64_t row, int64_t column, float& value) {
      value = -std::numeric_limits<float>::infinity();
      window.visit(row, column, [&](int64_t at_y, int64_t at_x, int64_t, int64_t) {
        if (x.has(at_y, at_x)) value = std::max(value, x.at(n, c, at_y, at_x));
      });
    });
    return y;
  }

  OnnxArray gemm(const Node& node, const OnnxArray& x) {
    const OnnxArray &w = known_.at(node.inputs[1]), &b = known_.at(node.inputs[2]);
    const bool turned = node.list("transB", {0})[0] == 1;
    const auto in = static_cast<size_t>(x.sizes[1]);
    const auto out = static_cast<size_t>(w.sizes[turned ? 0 : 1]);
    EXPECT_EQ(w.sizes[turned ? 1 : 0], x.sizes[1]) << node.output;
    OnnxArray y({x.sizes[0], static_cast<int64_t>(out)});
    if (testing::Test::HasFailure()) return y;
    for (size_t i = 0; i < y.values.size(); ++i) {
      y.values[i] = b.values[i % out];
      for (size_t j = 0; j < in; ++j)
        y.values[i] +=
            x.values[i / out * in + j] * w.values[turned ? i % out * in + j : j * out + i % out];
    }
    return y;
  }

  OnnxArray batch_norm(const Node& node, const OnnxArray& x) {
    OnnxArray y = x;
    const auto parameter = [&](size_t input, int64_t c) {
      return known_.at(node.inputs[input]).values[static_cast<size_t>(c)];
    };
    for_each(y, [&](int64_t, int64_t c, int64_t, int64_t, float& value) {
      const float deviation = std::sqrt(parameter(4, c) + node.real("epsilon", 1e-5f));
      value = parameter(1, c) * (value - parameter(3, c)) / deviation + parameter(2, c);
    });
    return y;
  }

  OnnxArray slice(const Node& node, const OnnxArray& x) const {
    const auto starts = integers(node, 1), axes = integers(node, 3), steps = integers(node, 4);
    std::vector<int64_t> first(4, 0), step(4, 1);
    OnnxArray y = x;
    for (size_t i = 0; i < axes.size(); ++i) {
      const auto axis = static_cast<size_t>(axes[i]);
      first[axis] = starts[i], step[axis] = steps[i];
      const int64_t end = std::min(integers(node, 2)[i], x.sizes[axis]);
      y.sizes[axis] = (end - starts[i] + steps[i] - 1) / steps[i];
    }
    y = OnnxArray(y.sizes);
    for_each(y, [&](int64_t n, int64_t c, int64_t row, int64_t column, float& value) {
      value = x.at(first[0] + n * step[0], first[1] + c * step[1], first[2] + row * step[2],
                   first[3] + column * step[3]);
    });
    return y;
  }

  OnnxArray pad(const Node& node, const OnnxArray& x) const {
    const auto pads = integers(node, 1);
    std::vector<int64_t> sizes = x.sizes;
    for (size_t i = 0; i < 4; ++i) sizes[i] += pads[i] + pads[i + 4];
    OnnxArray y(sizes);
    for_each(x, [&](int64_t n, int64_t c, int64_t row, int64_t column, float value) {
      y.at(n + pads[0], c + pads[1], row + pads[2], column + pads[3]) = value;
    });
    return y;
  }

  /// The values of an input of integers.
  std::vector<int64_t> integers(const Node& node, size_t input) const {
    const OnnxReader::Tensor& tensor = file_.tensors.at(node.inputs[input]);
    std::vector<int64_t> values(tensor.data.size() / sizeof(int64_t));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }

  template <class Array, class Visit>
  static void for_each(Array& y, const Visit& visit) {
    size_t i = 0;
    for (int64_t n = 0; n < y.sizes[0]; ++n)
      for (int64_t c = 0; c < y.sizes[1]; ++c)
        for (int64_t row = 0; row < y.sizes[2]; ++row)
          for (int64_t column = 0; column < y.sizes[3]; ++column)
            visit(n, c, row, column, y.values[i++]);
  }

  const OnnxReader& file_;
  std::map<std::string, OnnxArray> known_;
};

}  // namespace tw::test
