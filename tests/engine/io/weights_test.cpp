// Weights in torchvision's names and orders, and files that do not fit.
#include "engine/io/weights.h"

#include <cmath>
#include <numeric>

#include "engine/core/error.h"
#include "engine/io/file.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

const Parameter conv{
    .name = "conv.weight", .shape = {2, 3, 5, 4}, .layout = Layout::conv_ohwi};  // O, H, W, I
const Parameter linear{.name = "fc.weight",
                       .shape = {2, 24},
                       .layout = Layout::linear_nhwc,
                       .flattened = {3, 2, 4}};  // h, w, c

std::vector<float> counting(size_t n) {
  std::vector<float> values(n);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

TEST(Weights, AFilterIsWrittenAsOihw) {
  const std::vector<float> stored = counting(conv.length());
  const ExportedTensor exported = export_parameter(conv, stored);
  ASSERT_EQ(exported.shape, Shape({2, 4, 3, 5}));
  size_t at = 0;
  for (size_t o = 0; o < 2; ++o)
    for (size_t i = 0; i < 4; ++i)
      for (size_t h = 0; h < 3; ++h)
        for (size_t w = 0; w < 5; ++w)
          ASSERT_EQ(exported.values[at++], stored[((o * 3 + h) * 5 + w) * 4 + i]);
}

TEST(Weights, ALinearLayerAfterAFlattenIsWrittenInNchwOrder) {
  const std::vector<float> stored = counting(linear.length());
  const ExportedTensor exported = export_parameter(linear, stored);
  ASSERT_EQ(exported.shape, Shape({2, 24}));
  size_t at = 0;
  for (size_t row = 0; row < 2; ++row)
    for (size_t c = 0; c < 4; ++c)
      for (size_t h = 0; h < 3; ++h)
        for (size_t w = 0; w < 2; ++w)
          ASSERT_EQ(exported.values[at++], stored[row * 24 + (h * 2 + w) * 4 + c]);
}

TEST(Weights, ImportIsTheInverseOfExport) {
  for (const Parameter& p : {conv, linear, Parameter{.name = "b", .shape = {7}}}) {
    const std::vector<float> stored = counting(p.length());
    std::vector<float> back(p.length(), -1);
    import_parameter(p, export_parameter(p, stored).tensor(), back);
    EXPECT_EQ(back, stored) << p.name;
  }
}

TEST(Weights, ImportRequiresTheExportedShapeAndFloats) {
  std::vector<float> stored(conv.length(), -1), values(conv.length());
  const auto import = [&](Shape shape, DType dtype) {
    import_parameter(conv, {values.data(), shape, dtype, Device::cpu}, stored);
  };
  EXPECT_THROW(import(conv.shape, DType::f32), UserError);  // the stored order, as many elements
  EXPECT_THROW(import({2, 4, 3, 5}, DType::i32), UserError);
  EXPECT_EQ(stored, std::vector<float>(conv.length(), -1));
}

TEST(Weights, AMismatchedFlattenIsALogicError) {
  Parameter wrong = linear;
  wrong.flattened = {3, 2, 5};
  EXPECT_THROW(export_parameter(wrong, counting(wrong.length())), std::logic_error);
}

void declare(ParameterArena& arena) {
  arena.add({.name = "conv.weight",
             .shape = {4, 3, 3, 2},
             .init = Init::normal,
             .deviation = 1,
             .layout = Layout::conv_ohwi});
  arena.add({.name = "bn.weight", .shape = {4}, .init = Init::ones});
  arena.add_statistic({.name = "bn.running_mean", .shape = {4}});
}

struct Net {
  Context ctx;
  ParameterArena arena;
  explicit Net(uint64_t seed) {
    declare(arena);
    arena.allocate(ctx, seed);
  }
};

TEST(Weights, SaveAndLoadGiveTheSameBits) {
  const TempFolder folder;
  Net saved(1), loaded(2);
  saved.arena.statistic_values()[2] = 0.25f;
  ASSERT_NE(weights_hash(saved.arena), weights_hash(loaded.arena));
  save_weights(folder / "w", saved.arena, {{"key", "value"}});
  const SafetensorsReader file(folder / "w");
  EXPECT_EQ(file.metadata().at("key"), "value");
  EXPECT_EQ(file.tensor("conv.weight").shape, Shape({4, 2, 3, 3}));
  load_weights(file, loaded.arena);
  EXPECT_EQ(weights_hash(saved.arena), weights_hash(loaded.arena));
}

TEST(Weights, HashCoversParametersAndStatistics) {
  Net net(1);
  const uint64_t before = weights_hash(net.arena);
  net.arena.statistic_values()[0] += 1;
  EXPECT_NE(weights_hash(net.arena), before);
  net.arena.statistic_values()[0] -= 1;
  EXPECT_EQ(weights_hash(net.arena), before);
  net.arena.values()[5] += 1;
  EXPECT_NE(weights_hash(net.arena), before);
  net.arena.gradients()[5] += 1;
  const uint64_t changed = weights_hash(net.arena);
  net.arena.gradients()[5] += 1;
  EXPECT_EQ(weights_hash(net.arena), changed);
}

/// The tensors of a file for the net above. A test modifies them before they are written.
class WeightsFile {
 public:
  WeightsFile() {
    writer_.add("conv.weight", floats({4, 2, 3, 3}));
    writer_.add("bn.weight", floats({4}));
    writer_.add("bn.running_mean", floats({4}));
  }
  Tensor floats(Shape shape) { return {values_.data(), shape, DType::f32, Device::cpu}; }
  SafetensorsWriter& writer() { return writer_; }

  /// Returns the error of loading the file into a net; checks that the net is unchanged.
  std::string error() {
    const TempFolder folder;
    writer_.write(folder / "w");
    Net net(1);
    const uint64_t before = weights_hash(net.arena);
    std::string text =
        error_text<UserError>([&] { load_weights(SafetensorsReader(folder / "w"), net.arena); });
    EXPECT_EQ(weights_hash(net.arena), before) << "changed by a file that does not fit";
    return text;
  }

 private:
  std::vector<float> values_ = counting(100);
  SafetensorsWriter writer_;
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Weights, AnExtraTensorIsRejected) {
  WeightsFile file;
  file.writer().add("layer9.weight", file.floats({4}));
  EXPECT_TRUE(contains(file.error(), "tensor layer9.weight does not belong to this model"));
}

TEST(Weights, AWrongShapeIsRejected) {
  WeightsFile file;
  file.writer().add("bn.running_mean", file.floats({2, 2}));
  const std::string error = file.error();
  EXPECT_TRUE(contains(error, "bn.running_mean has shape (2, 2) of f32; the model expects (4)"))
      << error;
}

TEST(Weights, TheStoredOrderIsRejected) {
  WeightsFile file;
  file.writer().add("conv.weight", file.floats({4, 3, 3, 2}));
  EXPECT_TRUE(contains(file.error(), "the model expects (4, 2, 3, 3)"));
}

TEST(Weights, AWrongDTypeIsRejected) {
  WeightsFile file;
  Tensor tensor = file.floats({4});
  tensor.dtype = DType::i32;
  file.writer().add("bn.running_mean", tensor);
  EXPECT_TRUE(contains(file.error(), "(4) of i32; the model expects (4) of f32"));
}

TEST(Weights, ElementsThatAreNotFiniteAreRejected) {
  for (const float value : {NAN, INFINITY, -INFINITY})
    for (const char* name : {"conv.weight", "bn.running_mean"}) {
      WeightsFile file;
      std::vector<float> values = counting(72);
      values[2] = value;
      const Shape shape = name[0] == 'c' ? Shape{4, 2, 3, 3} : Shape{4};
      file.writer().add(name, {values.data(), shape, DType::f32, Device::cpu});
      const std::string error = file.error();
      EXPECT_TRUE(contains(error, fmt::format("tensor {} has {} in element 2", name, value)))
          << error;
    }
}

TEST(Weights, AnotherOrderOfTheAxesIsNamed) {
  EXPECT_TRUE(axes_differ({3, 2}, {2, 3}));
  EXPECT_FALSE(axes_differ({2, 3}, {2, 3}));
  EXPECT_FALSE(axes_differ({6}, {2, 3}));
  WeightsFile file;
  file.writer().add("conv.weight", file.floats({3, 3, 2, 4}));  // as TensorFlow stores it
  const std::string error = file.error();
  EXPECT_TRUE(contains(error, "expects (4, 2, 3, 3) of f32: its axes are in another order"))
      << error;
}

TEST(Weights, APrefixOfAllNamesIsDropped) {
  const TempFolder folder;
  std::vector<float> values = counting(72);
  const auto file = [&](const std::string& prefix, const std::string& other) {
    SafetensorsWriter writer;
    const auto add = [&](const std::string& name, Shape shape) {
      writer.add(name, {values.data(), shape, DType::f32, Device::cpu});
    };
    add(prefix + "conv.weight", {4, 2, 3, 3});
    add(prefix + "bn.weight", {4});
    add(other + "bn.running_mean", {4});
    writer.write(folder / "w");
    return SafetensorsReader(folder / "w");
  };
  Net net(1);
  for (const std::string prefix : {"module.", "_orig_mod.", "_orig_mod.module."}) {
    SafetensorsReader whole = file(prefix, prefix), part = file(prefix, "");
    EXPECT_EQ(drop_prefix(whole, net.arena), prefix);
    EXPECT_NO_THROW(check_weights(whole, net.arena));
    load_weights(whole, net.arena);
    EXPECT_EQ(net.arena.statistic_values()[3], 3.0f);
    EXPECT_EQ(drop_prefix(part, net.arena), "") << "not before every name";
    const std::string error = error_text<UserError>([&] { check_weights(part, net.arena); });
    EXPECT_TRUE(contains(
        error, "tensor conv.weight is missing, but the file has " + prefix + "conv.weight; "))
        << error;
  }
  SafetensorsReader plain = file("", "");
  EXPECT_EQ(drop_prefix(plain, net.arena), "");
}

TEST(Weights, AMissingTensorIsRejected) {
  const TempFolder folder;
  Net net(1), other(2);
  ParameterArena half;
  half.add({.name = "bn.weight", .shape = {4}});
  half.allocate(net.ctx, 1);
  save_weights(folder / "w", half);
  const uint64_t before = weights_hash(net.arena);
  const std::string error =
      error_text<UserError>([&] { load_weights(SafetensorsReader(folder / "w"), net.arena); });
  EXPECT_TRUE(contains(error, "tensor conv.weight is missing")) << error;
  EXPECT_FALSE(contains(error, "\n")) << error;
  EXPECT_EQ(weights_hash(net.arena), before);
}

// as safetensors.torch.save_file writes a state dict: the counter is I64, without dimensions
TEST(Weights, TorchsCountersAreIgnored) {
  const TempFolder folder;
  Net net(1);
  std::string header =
      R"({"bn.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
      R"("bn.running_mean":{"dtype":"F32","shape":[4],"data_offsets":[8,24]},)"
      R"("bn.weight":{"dtype":"F32","shape":[4],"data_offsets":[24,40]},)"
      R"("conv.weight":{"dtype":"F32","shape":[4,2,3,3],"data_offsets":[40,328]}})";
  const uint64_t length = header.size();
  std::string text(reinterpret_cast<const char*>(&length), sizeof length);
  const std::vector<float> values = counting(82);
  text += header;
  text.append(reinterpret_cast<const char*>(values.data()), 328);
  write_atomically(folder / "w", text);
  load_weights(SafetensorsReader(folder / "w"), net.arena);
  EXPECT_EQ(net.arena.statistic_values()[0], 2.0f);
  EXPECT_EQ(net.arena.value(net.arena.parameters()[1]).as<float>()[3], 9.0f);

  header.replace(header.find("bn.num_batches_tracked"), 22, "bn.something_else_here");
  text.replace(8, header.size(), header);
  write_atomically(folder / "w", text);
  EXPECT_TRUE(contains(
      error_text<UserError>([&] { load_weights(SafetensorsReader(folder / "w"), net.arena); }),
      "bn.something_else_here does not belong"));
}

}  // namespace
}  // namespace tw::test
