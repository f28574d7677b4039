#include "engine/core/dtype.h"

namespace tw {

std::string_view name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"f32", "bf16", "i32", "u8"};
  return names[static_cast<size_t>(dtype)];
}

}  // namespace tw
