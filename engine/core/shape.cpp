#include "engine/core/shape.h"

#include <algorithm>

#include "engine/core/error.h"

namespace tw {

Shape::Shape(std::span<const int64_t> dims) : rank_(static_cast<int>(dims.size())) {
  check<std::logic_error>(dims.size() <= kMaxRank, "[shape] {} dimensions; at most {}", dims.size(),
                          +kMaxRank);
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

int64_t Shape::numel() const {
  int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

std::string Shape::str() const { return fmt::format("{}", *this); }

}  // namespace tw

fmt::appender fmt::formatter<tw::Shape>::format(const tw::Shape& shape,
                                                fmt::format_context& context) const {
  auto out = fmt::format_to(context.out(), "(");
  for (int i = 0; i < shape.rank(); ++i)
    out = fmt::format_to(out, "{}{}", i == 0 ? "" : ", ", shape[i]);
  return fmt::format_to(out, ")");
}
