// Loads and stores f32 and bf16 elements as floats.
#pragma once

#include <cstdint>

#include "engine/core/dtype.h"

namespace tw::emulator {

inline float load(const void* elements, DType dtype, int64_t i) {
  return dtype == DType::bf16 ? static_cast<float>(static_cast<const bf16*>(elements)[i])
                              : static_cast<const float*>(elements)[i];
}

inline void store(void* elements, DType dtype, int64_t i, float value) {
  if (dtype == DType::bf16)
    static_cast<bf16*>(elements)[i] = bf16(value);
  else
    static_cast<float*>(elements)[i] = value;
}

}  // namespace tw::emulator
