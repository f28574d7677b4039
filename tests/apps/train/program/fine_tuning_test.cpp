// --reset-head and --freeze: training from weights of another task.
#include <cmath>
#include <functional>

#include "engine/io/safetensors.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

std::string resnet20(const TempFolder& folder, const std::string& arguments) {
  return fmt::format("THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model resnet20 {}",
                     TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

fs::path weights_of(const fs::path& run) {
  for (const auto& entry : fs::directory_iterator(run / "checkpoints"))
    return entry.path() / "model.safetensors";
  return {};
}

std::vector<float> tensor_in(const fs::path& file, const std::string& name) {
  const SafetensorsReader reader(file);
  const std::span<const float> values = reader.tensor(name).as<float>();
  return {values.begin(), values.end()};
}

/// A run of two steps with 20 classes, and its weights.
fs::path pretrained(const TempFolder& folder) {
  run_well(resnet20(folder,
                    "--classes 20 --batch-size 4 --max-steps 2 --eval-every never --name first " +
                        short_epochs(folder.path())));
  return weights_of(folder / "first");
}

TEST(FineTuning, OtherClassesNameResetHead) {
  const TempFolder folder;
  const std::string file = pretrained(folder).string(),
                    run = short_epochs(folder.path()) +
                          " --eval-every never --batch-size 4 --epochs 0 --pretrained " + file;
  const Ended refused = run_command(resnet20(folder, run + " --name no"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(
      refused.says("the last layer has 20 outputs, this network wants 2: "
                   "--reset-head starts a new last layer, --classes 20 keeps this one"))
      << refused.output;
  EXPECT_EQ(refused.output.find("error"), refused.output.rfind("error")) << refused.output;
  const Ended reset = run_well(resnet20(folder, run + " --reset-head --name second"));
  EXPECT_TRUE(reset.says("starting from the weights of " + file + "; the last layer is new\n"))
      << reset.output;
  const fs::path second = weights_of(folder / "second");
  EXPECT_EQ(tensor_in(second, "conv1.weight"), tensor_in(file, "conv1.weight"));
  EXPECT_EQ(tensor_in(second, "linear.weight").size(), 2u * 64);
}

/// Writes a copy of a weights file with the tensors as `change` leaves them.
void rewrite(const fs::path& from, const fs::path& to,
             const std::function<void(std::string& name, Tensor& tensor)>& change) {
  const SafetensorsReader file(from);
  SafetensorsWriter writer;
  for (const auto& [key, value] : file.metadata()) writer.metadata(key, value);
  for (const auto& [key, value] : file.tensors()) {
    std::string name = key;
    Tensor tensor = value;
    change(name, tensor);
    writer.add(name, tensor);
  }
  writer.write(to);
}

void nan_in_conv1(const std::string& name, const Tensor& tensor) {
  if (name == "conv1.weight") tensor.as<float>()[3] = NAN;
}

TEST(FineTuning, DropsAPrefixOfAllNames) {
  const TempFolder folder;
  const fs::path file = pretrained(folder), prefixed = folder / "prefixed.safetensors";
  rewrite(file, prefixed, [](std::string& name, Tensor&) { name = "_orig_mod.module." + name; });
  const Ended ended = run_well(resnet20(
      folder, short_epochs(folder.path()) +
                  " --classes 20 --eval-every never --batch-size 4 --epochs 0 --name second "
                  "--pretrained " +
                  prefixed.string()));
  EXPECT_TRUE(ended.says("the names in " + prefixed.string() +
                         " begin with _orig_mod.module., which is dropped"))
      << ended.output;
  EXPECT_EQ(weights_hash(folder / "second"), weights_hash(folder / "first"));
}

TEST(FineTuning, NamesTransposedTensorsAndElementsThatAreNotFinite) {
  const TempFolder folder;
  const fs::path file = pretrained(folder), other = folder / "other.safetensors";
  const auto error = [&](const std::string& from) {
    const Ended ended =
        run_command(resnet20(folder, short_epochs(folder.path()) +
                                         " --classes 20 --batch-size 4 --name second " + from));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_FALSE(fs::exists(folder / "second"));
    return ended.output;
  };
  rewrite(file, other, [](const std::string& name, Tensor& tensor) {
    if (name == "linear.weight") tensor = tensor.view({64, 20});
  });
  const std::string transposed = error("--pretrained " + other.string());
  EXPECT_NE(transposed.find("tensor linear.weight has shape (64, 20) of f32; the model expects "
                            "(20, 64) of f32: it is transposed"),
            std::string::npos)
      << transposed;
  rewrite(file, other, nan_in_conv1);
  const std::string nan = error("--pretrained " + other.string());
  EXPECT_NE(nan.find("other.safetensors: tensor conv1.weight has nan in element 3"),
            std::string::npos)
      << nan;
  rewrite(file, other, [](const std::string& name, const Tensor& tensor) {
    if (name == "bn1.running_var") tensor.as<float>()[2] = -0.5f;
  });
  const std::string variance = error("--pretrained " + other.string());
  EXPECT_NE(variance.find("other.safetensors: tensor bn1.running_var has -0.5 in element 2"),
            std::string::npos)
      << variance;
  rewrite(file, other, nan_in_conv1);
  fs::rename(other, file);
  const std::string resumed =
      error("--eval-only --eval-every 1 --resume " + (folder / "first").string());
  EXPECT_NE(resumed.find("model.safetensors: tensor conv1.weight has nan in element 3"),
            std::string::npos)
      << resumed;
}

TEST(FineTuning, AValidationWithoutAFiniteLossAdvisesNoLearningRateWhereNothingTrains) {
  const TempFolder folder;
  const fs::path file = pretrained(folder), other = folder / "other.safetensors";
  rewrite(file, other, [](const std::string& name, const Tensor& tensor) {
    if (name == "linear.weight") std::ranges::fill(tensor.as<float>(), 3e38f);
  });
  const Ended ended = run_command(resnet20(
      folder, short_epochs(folder.path()) +
                  " --classes 20 --batch-size 4 --eval-only --pretrained " + other.string()));
  EXPECT_EQ(ended.code, 4) << ended.output;
  EXPECT_TRUE(ended.says("error: [train] the validation loss is ")) << ended.output;
  EXPECT_TRUE(ended.output.ends_with(" with these weights\n")) << ended.output;
}

TEST(FineTuning, AdvisesClassesOnlyForALayerOfThatManyOutputs) {
  const TempFolder folder;
  const fs::path file = pretrained(folder), other = folder / "other.safetensors";
  struct Case {
    std::string tensor;
    Shape shape;
  };
  for (const Case& one :
       {Case{"linear.bias", {10, 2}}, Case{"linear.bias", {1, 20}}, Case{"linear.bias", {4, 5}},
        Case{"linear.weight", {40, 32}}, Case{"linear.weight", {1280}}}) {
    rewrite(file, other, [&](const std::string& name, Tensor& tensor) {
      if (name == one.tensor) tensor = tensor.view(one.shape);
    });
    const Ended ended = run_command(resnet20(
        folder, short_epochs(folder.path()) + " --name no --pretrained " + other.string()));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_FALSE(ended.says("--classes")) << ended.output;
    EXPECT_TRUE(ended.says(
        fmt::format("tensor {} has shape {} of f32; the model expects (2", one.tensor, one.shape)))
        << ended.output;
  }
}

TEST(FineTuning, ADamagedCheckpointNamesAnOlderWholeOne) {
  const TempFolder folder;
  run_well(resnet20(
      folder,
      "--batch-size 4 --max-steps 2 --checkpoint-steps 1 --keep-checkpoints 0 --eval-every "
      "never --name 'a run' " +
          short_epochs(folder.path())));
  const fs::path checkpoints = folder / "a run/checkpoints";
  fs::resize_file(checkpoints / "step-00000002/model.safetensors", 100'000);
  for (const fs::path& place : {folder / "a run", checkpoints / "step-00000002",
                                checkpoints / "step-00000002/model.safetensors"}) {
    const auto says = [&](const Ended& ended, const std::string& taker) {
      EXPECT_EQ(ended.code, 2) << ended.output;
      EXPECT_TRUE(ended.says(fmt::format("; {0} is whole: {1} '{0}' uses it\n",
                                         (checkpoints / "step-00000001").string(), taker)))
          << ended.output;
    };
    says(run_command(resnet20(folder, fmt::format("{} --name second --pretrained '{}'",
                                                  short_epochs(folder.path()), place.string()))),
         "--pretrained");
    says(run_command(fmt::format("{}/export '{}' -o {}/m.onnx", TW_BIN, place.string(),
                                 folder.path().string())),
         "export");
  }
}

TEST(FineTuning, TakesTheWeightsOfARunOrCheckpoint) {
  const TempFolder folder;
  const fs::path file = pretrained(folder);
  const std::string run =
      short_epochs(folder.path()) + " --reset-head --eval-every never --batch-size 4 --epochs 0 ";
  for (const fs::path& place : {folder / "first", file.parent_path()}) {
    const std::string name = place.filename().string() + "-tuned";
    run_well(
        resnet20(folder, fmt::format("{} --pretrained {} --name {}", run, place.string(), name)));
    EXPECT_EQ(tensor_in(weights_of(folder / name), "conv1.weight"),
              tensor_in(file, "conv1.weight"));
  }
  expect_end(
      resnet20(folder, fmt::format("{} --pretrained {} --name no", run, folder.path().string())), 2,
      "holds no checkpoint");
}

TEST(FineTuning, ResetHeadStartsTheLastLayerAnewWithTheSameClasses) {
  const TempFolder folder;
  const std::string file = pretrained(folder).string();
  run_well(resnet20(folder,
                    short_epochs(folder.path()) +
                        " --classes 20 --eval-every never --batch-size 4 --epochs 0 --reset-head "
                        "--name second --pretrained " +
                        file));
  EXPECT_NE(tensor_in(weights_of(folder / "second"), "linear.weight"),
            tensor_in(file, "linear.weight"));
}

TEST(FineTuning, FrozenTensorsKeepTheirBits) {
  const TempFolder folder;
  const std::string file = pretrained(folder).string();
  int number = 0;
  for (const char* options :
       {"", "--workers 2 --sparsifier topk --density 0.5", "--workers 2 --scope layer --overlap",
        "--workers 2 --local-steps 2 --accumulate 2",
        "--workers 2 --sparsifier quantized --no-error-feedback"}) {
    const std::string name = fmt::format("run{}", ++number);
    const Ended ended = run_well(resnet20(
        folder, fmt::format("{} --classes 20 --eval-every never --batch-size 4 --max-steps 3 "
                            "--freeze 'conv1.*,layer1' --name {} --pretrained {} {}",
                            short_epochs(folder.path()), name, file, options)));
    EXPECT_TRUE(ended.says("frozen: 19 of 59 tensors, 14448 of 270372 parameters")) << ended.output;
    const fs::path after = weights_of(folder / name);
    for (const char* frozen : {"conv1.weight", "layer1.2.bn2.weight", "layer1.0.conv1.weight"})
      EXPECT_EQ(tensor_in(after, frozen), tensor_in(file, frozen)) << frozen << " " << options;
    for (const char* trained : {"bn1.weight", "layer2.0.conv1.weight", "linear.weight"})
      EXPECT_NE(tensor_in(after, trained), tensor_in(file, trained)) << trained << " " << options;
  }
}

TEST(FineTuning, AnExchangeThatMovesAllParametersExcludesFrozenOnes) {
  const TempFolder folder;
  const Ended ended = run_command(
      resnet20(folder, "--freeze conv1 --sparsifier quantized --set quantized.values=sign"));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.says("freeze is conv1, but exchange quantized")) << ended.output;
}

TEST(FineTuning, APatternThatMatchesNothingIsAUserError) {
  const TempFolder folder;
  const auto says = [&](const std::string& options, const std::string& expected) {
    expect_end(resnet20(folder, "--dry-run " + options), 2, expected);
  };
  says("--freeze layr1", "freeze is layr1: resnet20 has no such tensor; nearest is \"layer1\"");
  says("--freeze '*'", "no tensor is left to train");
  says("--reset-head", "reset-head needs --pretrained");
}

}  // namespace
}  // namespace tw::test
