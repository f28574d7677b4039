#include "apps/common/vector_file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ranges>

#include "apps/common/npy.h"
#include "engine/core/error.h"

namespace tw {

namespace {

std::vector<float> checked(std::vector<float> u, const std::filesystem::path& path) {
  check(!u.empty() && u.size() < UINT32_MAX, "[vector] {} has {} elements; expected 1 to {}",
        path.string(), u.size(), UINT32_MAX - 1);
  const auto bad = std::ranges::find_if_not(u, [](float x) { return std::isfinite(x); });
  if (bad != u.end()) fail("[vector] {}: element {} is {}", path.string(), bad - u.begin(), *bad);
  return u;
}

}  // namespace

std::vector<float> vector_in(const SafetensorsReader& file, const std::string& tensor) {
  const Tensor& found = file.tensor(tensor);
  check(found.dtype == DType::f32, "[vector] {}: tensor {} is {}; expected f32",
        file.path().string(), tensor, name(found.dtype));
  const auto values = found.as<float>();
  return checked({values.begin(), values.end()}, file.path());
}

std::vector<float> read_vector(const std::filesystem::path& path, const std::string& tensor) {
  if (is_npy(path) || path.extension() == ".npy") {
    check(tensor.empty(), "[vector] {} holds one array; --tensor is for safetensors",
          path.string());
    return checked(read_npy(path), path);
  }
  const SafetensorsReader file(path);
  if (!tensor.empty()) return vector_in(file, tensor);
  const auto names = file.tensors() | std::views::keys;
  check(file.tensors().size() == 1, "[vector] {} has {} tensors; choose one with --tensor{}{}",
        path.string(), file.tensors().size(), names.empty() ? "" : ": ", fmt::join(names, ", "));
  return vector_in(file, names.front());
}

}  // namespace tw
