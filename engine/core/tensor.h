// Tensor: a typed, contiguous view of memory owned by a Buffer, a Planner or a ParameterArena.
#pragma once

#include <span>

#include "engine/core/dtype.h"
#include "engine/core/shape.h"

namespace tw {

struct Tensor {
  void* data = nullptr;
  Shape shape;
  DType dtype = DType::f32;
  Device device = Device::cpu;

  int64_t numel() const { return shape.numel(); }
  size_t bytes() const { return static_cast<size_t>(numel()) * size_of(dtype); }

  /// The elements as T; throws logic_error when T does not match the dtype.
  template <class T>
  std::span<T> as() const {
    expect(DTypeOf<T>::value);
    return {static_cast<T*>(data), static_cast<size_t>(numel())};
  }
  /// The same elements under another shape of equal numel.
  Tensor view(Shape other) const;
  /// Rows [begin, end) of the first dimension.
  Tensor rows(int64_t begin, int64_t end) const;

 private:
  void expect(DType wanted) const;
};

}  // namespace tw
