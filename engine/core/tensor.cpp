#include "engine/core/tensor.h"

#include "engine/core/error.h"

namespace tw {

void Tensor::expect(DType wanted) const {
  check<std::logic_error>(dtype == wanted, "[tensor] {} tensor of shape {} read as {}", name(dtype),
                          shape, name(wanted));
}

Tensor Tensor::view(Shape other) const {
  check<std::logic_error>(other.numel() == numel(), "[tensor] shape {} viewed as {}", shape, other);
  return {data, other, dtype, device};
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  check<std::logic_error>(0 <= begin && begin <= end && end <= shape[0],
                          "[tensor] rows {} to {} of {}", begin, end, shape);
  Shape part = shape;
  part[0] = end - begin;
  const int64_t row_bytes = shape[0] == 0 ? 0 : static_cast<int64_t>(bytes()) / shape[0];
  return {static_cast<std::byte*>(data) + begin * row_bytes, part, dtype, device};
}

}  // namespace tw
