// Inputs of the golden values of scripts/golden/cifar.py, and comparison with them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/io/weights.h"
#include "models/model.h"
#include "tests/support/owned_tensor.h"
#include "tests/support/source_folder.h"

namespace tw::test {

using Json = nlohmann::ordered_json;

inline Json read_golden(const std::string& model) {
  std::ifstream file(source_folder() / "tests/models/golden" / (model + ".json"));
  EXPECT_TRUE(file) << "golden/" << model << ".json cannot be read";
  return Json::parse(file);
}

/// Pseudo-random 32-bit words for the elements of the tensor `name`.
class Words {
 public:
  explicit Words(const std::string& name, uint32_t salt = 0) {
    uint32_t hash = 2166136261u;  // FNV-1a
    for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 16777619u;
    key_ = hash + salt * 0x85EBCA6Bu;
  }
  uint32_t operator[](size_t i) const {
    uint32_t x = (static_cast<uint32_t>(i) * 0x9E3779B9u) ^ key_;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
  }
  /// In [-1, 1).
  double unit(size_t i) const { return ((*this)[i] >> 8) * 0x1p-23 - 1.0; }

 private:
  uint32_t key_;
};

/// Sets a parameter or statistic, stored in `stored`, to its golden values.
inline void set_parameter(const Parameter& p, const Tensor& stored) {
  std::vector<float> values(p.length());
  const Tensor on_host{values.data(), stored.shape, stored.dtype, Device::cpu};
  copy_now(stored, on_host);
  ExportedTensor exported = export_parameter(p, values);
  const Words words(p.name);
  const auto fan = static_cast<double>(p.shape.numel() / p.shape[0]);
  const bool matrix = p.shape.rank() > 1;
  const double scale = matrix ? std::sqrt(6.0 / fan) : 0.2;
  const bool factor = p.name.ends_with(".weight") || p.name.ends_with(".running_var");
  const double centre = !matrix && factor ? 1.0 : 0.0;
  for (size_t i = 0; i < exported.values.size(); ++i)
    exported.values[i] = static_cast<float>(words.unit(i) * scale + centre);
  import_parameter(p, exported.tensor(), values);
  copy_now(on_host, stored);
}

inline void set_batch(const Model& model, uint32_t trial) {
  const Words block("images.blocks", trial), noise("images.noise", trial), label("labels", trial);
  std::vector<uint8_t> images(model.images().bytes());
  const auto size = static_cast<size_t>(model.spec().image[0]);  // square, three channels
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t c = i % 3, w = i / 3 % size, h = i / 3 / size % size, n = i / 3 / size / size;
    const size_t large = ((n * 4 + h * 4 / size) * 4 + w * 4 / size) * 3 + c;
    images[i] = static_cast<uint8_t>(block[large] % 192 + noise[i] % 64);
  }
  std::vector<int32_t> labels(static_cast<size_t>(model.labels().numel()));
  for (size_t n = 0; n < labels.size(); ++n)
    labels[n] = static_cast<int32_t>(label[n] % static_cast<uint32_t>(model.spec().classes));
  copy_now({images.data(), model.images().shape, DType::u8, Device::cpu}, model.images());
  copy_now({labels.data(), model.labels().shape, DType::i32, Device::cpu}, model.labels());
}

/// The norm of the difference from the golden tensor; an estimate for large tensors.
inline double error_norm(const std::string& name, const std::vector<float>& ours,
                         const Json& golden) {
  double sum = 0;
  if (golden.contains("values")) {
    const auto values = golden["values"].get<std::vector<double>>();
    for (size_t i = 0; i < ours.size(); ++i) sum += std::pow(ours[i] - values[i], 2);
    return std::sqrt(sum);
  }
  const auto projections = golden["projections"].get<std::vector<double>>();
  const Words signs(name + ".signs");
  constexpr double kSign[] = {1, -1};
  double sums[32] = {};
  for (size_t i = 0; i < ours.size(); ++i) {
    const uint32_t word = signs[i];
    for (size_t bit = 0; bit < 32; ++bit) sums[bit] += kSign[(word >> bit) & 1u] * ours[i];
  }
  for (size_t bit = 0; bit < 32; ++bit) sum += std::pow(sums[bit] - projections[bit], 2);
  // the mean square of projections on random signs is the square of the norm
  double norm = std::sqrt(sum / 32);
  // a sampled element may show a larger difference than the projections
  const auto samples = golden["samples"].get<std::vector<double>>();
  const Words index(name + ".samples");
  for (size_t i = 0; i < samples.size(); ++i)
    norm = std::max(norm, std::abs(ours[index[i] % ours.size()] - samples[i]));
  return norm;
}

}  // namespace tw::test
