// Shape: up to four dimensions, outermost first (activations are N, H, W, C).
#pragma once

#include <fmt/core.h>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace tw {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(std::span(dims.begin(), dims.size())) {}
  explicit Shape(std::span<const int64_t> dims);

  int rank() const { return rank_; }
  int64_t operator[](int i) const { return dims_[static_cast<size_t>(i)]; }
  int64_t& operator[](int i) { return dims_[static_cast<size_t>(i)]; }
  /// Product of the dimensions; 1 for a scalar.
  int64_t numel() const;
  /// `(8, 32, 32, 16)`
  std::string str() const;
  bool operator==(const Shape&) const = default;

 private:
  std::array<int64_t, kMaxRank> dims_{};
  int rank_ = 0;
};

}  // namespace tw

/// Formats without a temporary string, so that passing checks allocate nothing.
template <>
struct fmt::formatter<tw::Shape> {
  constexpr auto parse(fmt::format_parse_context& context) { return context.begin(); }
  fmt::appender format(const tw::Shape& shape, fmt::format_context& context) const;
};
