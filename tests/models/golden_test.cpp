// The first step of ResNet-20 and VGG-16 against PyTorch: loss and every gradient.
// scripts/make_golden.py wrote the reference (PyTorch in float64) and explains its format; weights
// and batch come from an integer hash that both sides compute.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "engine/cpu_features.h"
#include "engine/weights.h"
#include "models/model.h"

namespace tw {
namespace {

using Json = nlohmann::ordered_json;

Json read_golden(const std::string& model) {
  std::ifstream file(std::filesystem::path(__FILE__).parent_path() / "golden" / (model + ".json"));
  EXPECT_TRUE(file) << "golden/" << model << ".json cannot be read";
  return Json::parse(file);
}

/// 32-bit words for the elements of what is called `name`.
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

void set_parameter(ParameterArena& arena, const Parameter& p) {
  ExportedTensor exported = export_parameter(p, arena.value(p).as<float>());
  const Words words(p.name);
  const auto fan = static_cast<double>(p.shape.numel() / p.shape[0]);
  const bool matrix = p.shape.rank() > 1;
  const double scale = matrix ? std::sqrt(6.0 / fan) : 0.2;
  const double centre = !matrix && p.name.ends_with(".weight") ? 1.0 : 0.0;
  for (size_t i = 0; i < exported.values.size(); ++i)
    exported.values[i] = static_cast<float>(words.unit(i) * scale + centre);
  import_parameter(p, exported.tensor(), arena.value(p).as<float>());
}

void set_batch(const Model& model, uint32_t trial) {
  const Words block("images.blocks", trial), noise("images.noise", trial), label("labels", trial);
  const auto images = model.images().as<uint8_t>();
  for (size_t i = 0; i < images.size(); ++i) {
    const size_t c = i % 3, w = i / 3 % 32, h = i / 96 % 32, n = i / 3072;
    const size_t large = ((n * 4 + h / 8) * 4 + w / 8) * 3 + c;
    images[i] = static_cast<uint8_t>(block[large] % 192 + noise[i] % 64);
  }
  const auto labels = model.labels().as<int32_t>();
  for (size_t n = 0; n < labels.size(); ++n) labels[n] = static_cast<int32_t>(label[n] % 10);
}

/// The estimated norm of the difference between ours and the golden tensor.
double error_norm(const std::string& name, const std::vector<float>& ours, const Json& golden) {
  const auto samples = golden["samples"].get<std::vector<double>>();
  double sum = 0;
  if (samples.size() == ours.size()) {
    for (size_t i = 0; i < ours.size(); ++i) sum += std::pow(ours[i] - samples[i], 2);
    return std::sqrt(sum);
  }
  const auto projections = golden["projections"].get<std::vector<double>>();
  for (size_t first = 0; first < projections.size(); first += 32) {
    const Words words(name, static_cast<uint32_t>(first / 32 + 1));
    double signed_sums[32] = {};
    for (size_t i = 0; i < ours.size(); ++i) {
      const uint32_t word = words[i];
      for (size_t bit = 0; bit < 32; ++bit)
        signed_sums[bit] += (word >> bit) & 1u ? -double{ours[i]} : double{ours[i]};
    }
    for (size_t bit = 0; bit < 32; ++bit)
      sum += std::pow(signed_sums[bit] - projections[first + bit], 2);
  }
  // the mean over random signs of a projection's square is the square of the norm
  double norm = std::sqrt(sum / static_cast<double>(projections.size()));
  // and no single element may differ by more than the whole
  const Words index(name + ".samples");
  for (size_t i = 0; i < samples.size(); ++i)
    norm = std::max(norm, std::abs(ours[index[i] % ours.size()] - samples[i]));
  return norm;
}

struct FirstStep {
  double loss;
  std::map<std::string, std::vector<float>> gradients;  ///< in torchvision's order
};

FirstStep first_step(const std::string& name, DType activations, const Json& golden) {
  Context ctx;
  Model model(name, {});
  const auto batch = golden["batch"].get<int64_t>();
  model.plan(ctx, {.batch = batch,
                   .activations = activations,
                   .mean = golden["mean"].get<std::vector<float>>(),
                   .deviation = golden["deviation"].get<std::vector<float>>()});
  model.allocate(ctx, 1);
  for (const Parameter& p : model.arena().parameters()) set_parameter(model.arena(), p);
  set_batch(model, golden["trial"].get<uint32_t>());
  model.refresh(ctx);
  const Pass pass{.ctx = ctx};
  FirstStep step{model.forward(pass).loss / static_cast<double>(batch), {}};
  model.backward(pass);
  for (const Parameter& p : model.arena().parameters())
    step.gradients[p.name] = export_parameter(p, model.arena().gradient(p).as<float>()).values;
  return step;
}

class Golden : public testing::TestWithParam<const char*> {
 protected:
  const Json golden = read_golden(GetParam());
  double largest_norm() const {
    double largest = 0;
    for (const auto& [name, tensor] : golden["tensors"].items())
      largest = std::max(largest, tensor["norm"].get<double>());
    return largest;
  }
};

TEST_P(Golden, NamesAndSizesAreTheUsualOnes) {
  const Model model(GetParam(), {});
  const auto& parameters = model.arena().parameters();
  const Json& tensors = golden["tensors"];
  ASSERT_EQ(parameters.size(), tensors.size());
  auto p = parameters.begin();
  for (const auto& [name, tensor] : tensors.items()) {
    EXPECT_EQ(p->name, name);
    EXPECT_EQ(p->length(), tensor["size"].get<size_t>()) << name;
    ++p;
  }
}

TEST_P(Golden, F32StepIsPyTorchs) {
  const FirstStep step = first_step(GetParam(), DType::f32, golden);
  EXPECT_NEAR(step.loss, golden["loss"].get<double>(), 1e-5);
  // a bias before a batch norm has no true gradient: rounding is all there is
  const double floor = 1e-6 * largest_norm();
  double worst = 0;
  for (const auto& [name, tensor] : golden["tensors"].items()) {
    const double error = error_norm(name, step.gradients.at(name), tensor);
    const double norm = tensor["norm"].get<double>();
    EXPECT_LE(error, std::max(1e-4 * norm, floor)) << name;
    if (norm > floor) worst = std::max(worst, error / norm);
  }
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

TEST_P(Golden, Bf16StepIsAsGoodAsPyTorchsAutocast) {
  if (!cpu_has_bf16()) GTEST_SKIP() << "this CPU has no bf16";
  const FirstStep step = first_step(GetParam(), DType::bf16, golden);
  const double loss = golden["loss"].get<double>();
  EXPECT_NEAR(step.loss, loss, 0.02 * loss);
  for (const auto& [name, tensor] : golden["tensors"].items()) {
    const double error = error_norm(name, step.gradients.at(name), tensor);
    EXPECT_LE(error, 1.5 * tensor["autocast_error"].get<double>()) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::Values("resnet20", "vgg16"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tw
