#include "engine/core/dtype.h"

#include <algorithm>
#include <array>

#include "engine/core/error.h"

namespace tw {

std::string_view name(Device device) { return device == Device::cpu ? "cpu" : "cuda"; }

std::string_view name(DType dtype) {
  constexpr std::string_view names[] = {"f32", "bf16", "i32", "u8"};
  return names[static_cast<size_t>(dtype)];
}

namespace {

constexpr std::array<std::string_view, 7> kValueFormats{"f32",  "fp16", "bf16", "int8",
                                                        "int4", "int2", "sign"};

}  // namespace

std::string_view name(ValueFormat format) { return kValueFormats[static_cast<size_t>(format)]; }

ValueFormat value_format(std::string_view name) {
  const auto at = std::ranges::find(kValueFormats, name);
  check<std::logic_error>(at != kValueFormats.end(), "[dtype] unknown format {}", name);
  return static_cast<ValueFormat>(at - kValueFormats.begin());
}

}  // namespace tw
