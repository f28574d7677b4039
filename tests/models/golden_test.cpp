// First steps of ResNet-20 and VGG-16 against PyTorch's: loss and every gradient.
// scripts/make_golden.py wrote the reference (PyTorch in float64) and explains its format; weights
// and batch come from an integer hash that both sides compute.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
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

/// The norm of the difference between ours and the golden tensor; of large tensors, an estimate.
double error_norm(const std::string& name, const std::vector<float>& ours, const Json& golden) {
  double sum = 0;
  if (golden.contains("values")) {
    const auto values = golden["values"].get<std::vector<double>>();
    for (size_t i = 0; i < ours.size(); ++i) sum += std::pow(ours[i] - values[i], 2);
    return std::sqrt(sum);
  }
  const auto projections = golden["projections"].get<std::vector<double>>();
  const Words signs(name + ".signs");
  double sums[32] = {};
  for (size_t i = 0; i < ours.size(); ++i) {
    const uint32_t word = signs[i];
    for (size_t bit = 0; bit < 32; ++bit)
      sums[bit] += (word >> bit) & 1u ? -double{ours[i]} : double{ours[i]};
  }
  for (size_t bit = 0; bit < 32; ++bit) sum += std::pow(sums[bit] - projections[bit], 2);
  // over random signs, the mean of a projection's square is the square of the norm
  double norm = std::sqrt(sum / 32);
  // and no single element may differ by more than the whole
  const auto samples = golden["samples"].get<std::vector<double>>();
  const Words index(name + ".samples");
  for (size_t i = 0; i < samples.size(); ++i)
    norm = std::max(norm, std::abs(ours[index[i] % ours.size()] - samples[i]));
  return norm;
}

/// A model with the golden weights that takes golden steps.
class GoldenModel {
 public:
  GoldenModel(const std::string& name, DType activations, const Json& golden) : model_(name, {}) {
    model_.plan(ctx_, {.batch = golden["batch"].get<int64_t>(),
                       .activations = activations,
                       .mean = golden["mean"].get<std::vector<float>>(),
                       .deviation = golden["deviation"].get<std::vector<float>>()});
    model_.allocate(ctx_, 1);
    for (const Parameter& p : model_.arena().parameters()) set_parameter(model_.arena(), p);
    model_.refresh(ctx_);
  }

  /// The mean loss; afterwards the arena holds the gradients.
  double step(const Json& golden) {
    set_batch(model_, golden["trial"].get<uint32_t>());
    const auto sums = model_.forward(pass_);
    model_.backward(pass_);
    return sums.loss / static_cast<double>(sums.count);
  }

  /// The norms of all gradients' errors, in the order of the parameters.
  std::vector<double> errors(const Json& golden) {
    std::vector<double> result;
    for (const Parameter& p : model_.arena().parameters()) {
      const auto gradient = export_parameter(p, model_.arena().gradient(p).as<float>());
      result.push_back(error_norm(p.name, gradient.values, golden["tensors"][p.name]));
    }
    return result;
  }

 private:
  Context ctx_;
  Model model_;
  Pass pass_{.ctx = ctx_};
};

class Golden : public testing::TestWithParam<const char*> {
 protected:
  const Json golden = read_golden(GetParam());
};

TEST_P(Golden, NamesAndSizesAreTheUsualOnes) {
  const Model model(GetParam(), {});
  const auto& parameters = model.arena().parameters();
  const Json& tensors = golden["steps"][0]["tensors"];
  ASSERT_EQ(parameters.size(), tensors.size());
  auto p = parameters.begin();
  for (const auto& [name, tensor] : tensors.items()) {
    EXPECT_EQ(p->name, name);
    EXPECT_EQ(p->length(), tensor["size"].get<size_t>()) << name;
    ++p;
  }
}

TEST_P(Golden, F32StepIsPyTorchs) {
  GoldenModel model(GetParam(), DType::f32, golden);
  const Json& step = golden["steps"][0];
  EXPECT_NEAR(model.step(step), step["loss"].get<double>(), 1e-5);
  const std::vector<double> errors = model.errors(step);
  double largest = 0, worst = 0;
  for (const auto& tensor : step["tensors"])
    largest = std::max(largest, tensor["norm"].get<double>());
  // a bias before a batch norm has no true gradient: rounding is all there is
  const double floor = 1e-6 * largest;
  size_t i = 0;
  for (const auto& [name, tensor] : step["tensors"].items()) {
    const double norm = tensor["norm"].get<double>();
    EXPECT_LE(errors[i], norm > floor ? 1e-4 * norm : floor) << name;
    if (norm > floor) worst = std::max(worst, errors[i] / norm);
    ++i;
  }
  RecordProperty("worst_relative_error", fmt::format("{:.2e}", worst));
}

/// Per tensor, the rms over the steps.
TEST_P(Golden, Bf16StepsAreAsGoodAsPyTorchsAutocast) {
  if (!cpu_has_bf16()) GTEST_SKIP() << "this CPU has no bf16";
  GoldenModel model(GetParam(), DType::bf16, golden);
  std::map<std::string, double> ours, autocast;  // sums of squares
  for (const Json& step : golden["steps"]) {
    const double loss = step["loss"].get<double>();
    EXPECT_NEAR(model.step(step), loss, 0.02 * loss);
    const std::vector<double> errors = model.errors(step);
    size_t i = 0;
    for (const auto& [name, tensor] : step["tensors"].items()) {
      ours[name] += std::pow(errors[i++], 2);
      autocast[name] += std::pow(tensor["autocast_error"].get<double>(), 2);
    }
  }
  double worst = 0;
  for (const auto& [name, square] : ours) {
    const double ratio = std::sqrt(square / autocast[name]);
    EXPECT_LE(ratio, 1.5) << name;
    worst = std::max(worst, ratio);
  }
  RecordProperty("worst_ratio_to_autocast", fmt::format("{:.2f}", worst));
}

INSTANTIATE_TEST_SUITE_P(Models, Golden, testing::Values("resnet20", "vgg16"),
                         [](const auto& model) { return std::string(model.param); });

}  // namespace
}  // namespace tw
