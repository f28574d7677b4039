// The program export.
#include <nlohmann/json.hpp>

#include "engine/io/safetensors.h"
#include "tests/apps/export/onnx_reader.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

class Export : public testing::Test {
 protected:
  Export() {
    run_well(fmt::format(
        "THINWIRE_CACHE={} {} --output-dir {} --name run --model lenet --precision f32 --max-steps "
        "1 --eval-every never",
        TW_TEST_CACHE, TW_TRAIN, folder_.path().string()));
  }
  /// Runs export in the folder of the run.
  Ended run(const std::string& arguments) {
    return run_command(
        fmt::format("cd {} && {}/export {}", folder_.path().string(), TW_BIN, arguments));
  }
  size_t files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_.path()), {}));
  }

  TempFolder folder_;
};

TEST_F(Export, WritesTheNetworkOfARun) {
  const Ended ended = run("run -o model.onnx");
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("model.onnx: lenet for images of 32 x 32, 10 classes, ONNX opset 13"))
      << ended.output;
  const OnnxReader file(text_of(folder_ / "model.onnx"));
  EXPECT_EQ(file.count("Conv"), 2u);
  EXPECT_EQ(nlohmann::json::parse(file.metadata.at("normalisation")),
            (nlohmann::json{{"mean", {0.5, 0.5, 0.5}}, {"deviation", {0.25, 0.25, 0.25}}}));
  EXPECT_NE(file.metadata.at("input").find("(pixel / 255 - mean) / deviation"), std::string::npos);
}

TEST_F(Export, NamesTheFileAfterTheRun) {
  for (const char* source : {"run", "./run/"}) {
    const Ended ended = run(source);
    ASSERT_EQ(ended.code, 0) << ended.output;
    EXPECT_TRUE(ended.output.starts_with("run.onnx: lenet")) << ended.output;
    EXPECT_TRUE(fs::remove(folder_ / "run.onnx"));
  }
  fs::copy_file(folder_ / "run/checkpoints/step-00000001/model.safetensors",
                folder_ / "weights.safetensors");
  EXPECT_TRUE(run("weights.safetensors").output.starts_with("weights.onnx: lenet"));
}

TEST_F(Export, WritesAnExample) {
  ASSERT_EQ(run("run -o model.onnx --example example.safetensors").code, 0);
  const SafetensorsReader example(folder_ / "example.safetensors");
  EXPECT_EQ(example.tensor("images").shape, (Shape{4, 32, 32, 3}));
  EXPECT_EQ(example.tensor("input").shape, (Shape{4, 3, 32, 32}));
  EXPECT_EQ(example.tensor("logits").shape, (Shape{4, 10}));
  // channel 1 of pixel (0, 2) of image 3
  const float pixel = example.tensor("images").as<uint8_t>()[(3 * 1024 + 2) * 3 + 1];
  EXPECT_FLOAT_EQ(example.tensor("input").as<float>()[(3 * 3 + 1) * 1024 + 2],
                  (pixel / 255 - 0.5f) / 0.25f);
}

TEST_F(Export, TakesWeightsThatNameNoNetwork) {
  // the weights without metadata
  const SafetensorsReader weights(folder_ / "run/checkpoints/step-00000001/model.safetensors");
  SafetensorsWriter bare;
  for (const auto& [name, tensor] : weights.tensors()) bare.add(name, tensor);
  bare.write(folder_ / "bare.safetensors");
  const Ended unnamed = run("bare.safetensors -o model.onnx");
  EXPECT_EQ(unnamed.code, 2);
  EXPECT_TRUE(unnamed.says("does not name its network; give --model")) << unnamed.output;
  const Ended sizeless = run("bare.safetensors -o model.onnx --model lenet");
  EXPECT_EQ(sizeless.code, 2);
  EXPECT_TRUE(sizeless.says("give --image-size")) << sizeless.output;
  ASSERT_EQ(run("bare.safetensors -o model.onnx --model lenet --image-size 32").code, 0);
  const OnnxReader file(text_of(folder_ / "model.onnx"));
  EXPECT_FALSE(file.metadata.contains("normalisation"));
}

TEST_F(Export, DropsAPrefixOfTheNamesAndSaysWhatIsWrongWithWeights) {
  const fs::path weights = folder_ / "run/checkpoints/step-00000001/model.safetensors";
  ASSERT_EQ(run("run -o model.onnx").code, 0);
  const std::string plain = text_of(folder_ / "model.onnx");
  const auto exported =
      [&](const std::function<void(SafetensorsWriter&, const Tensor&, const std::string&)>& add) {
        const SafetensorsReader file(weights);
        SafetensorsWriter other;
        for (const auto& [key, value] : file.metadata()) other.metadata(key, value);
        for (const auto& [name, tensor] : file.tensors()) add(other, tensor, name);
        other.write(folder_ / "other.safetensors");
        return run("other.safetensors -o model.onnx");
      };
  const Ended prefixed =
      exported([](SafetensorsWriter& to, const Tensor& tensor, const std::string& name) {
        to.add("module." + name, tensor);
      });
  EXPECT_EQ(prefixed.code, 0) << prefixed.output;
  EXPECT_TRUE(prefixed.says("the names in other.safetensors begin with module., which is dropped"))
      << prefixed.output;
  EXPECT_EQ(text_of(folder_ / "model.onnx"), plain);

  const Ended transposed =
      exported([](SafetensorsWriter& to, const Tensor& tensor, const std::string& name) {
        const Shape& shape = tensor.shape;
        to.add(name, name == "fc3.weight" ? tensor.view({shape[1], shape[0]}) : tensor);
      });
  EXPECT_EQ(transposed.code, 2) << transposed.output;
  EXPECT_TRUE(
      transposed.says("tensor fc3.weight has shape (84, 10) of f32; the model expects "
                      "(10, 84) of f32: it is transposed"))
      << transposed.output;
  const Ended nan =
      exported([](SafetensorsWriter& to, const Tensor& tensor, const std::string& name) {
        if (name == "fc1.bias") tensor.as<float>()[3] = NAN;
        to.add(name, tensor);
      });
  EXPECT_EQ(nan.code, 2) << nan.output;
  EXPECT_TRUE(nan.says("other.safetensors: tensor fc1.bias has nan in element 3")) << nan.output;
}

TEST_F(Export, RefusesImagesOfImpossibleSides) {
  const SafetensorsReader weights(folder_ / "run/checkpoints/step-00000001/model.safetensors");
  for (const std::string model : {"lenet", "resnet20", "mlp"})
    for (const char* image :
         {"[1048576,1048576,3]", "[4294967296,4294967296,3]", "[5,3689348814741910528,3]",
          "[4097,32,3]", "[32,32,0]", "[-32,32,3]", "[32,32]", "[32,32,3,1]", "[1,32,32,3,1]"}) {
      SafetensorsWriter other;
      for (const auto& [name, tensor] : weights.tensors()) other.add(name, tensor);
      other.metadata("image", image);
      other.write(folder_ / "other.safetensors");
      const Ended ended = run("other.safetensors -o m.onnx --model " + model);
      EXPECT_EQ(ended.code, 2) << model << image << ended.output;
      EXPECT_EQ(ended.lines(), 1u) << model << image << ended.output;
      EXPECT_TRUE(ended.says("other.safetensors: image is [")) << ended.output;
      EXPECT_TRUE(ended.says("each 1 to 4096")) << ended.output;
    }
}

TEST_F(Export, RefusesSidesThatAreNoIntegers) {
  const SafetensorsReader weights(folder_ / "run/checkpoints/step-00000001/model.safetensors");
  for (const char* image : {"[32.5,32,3]", "[1e30,32,3]", R"(["32",32,3])"}) {
    SafetensorsWriter other;
    for (const auto& [name, tensor] : weights.tensors()) other.add(name, tensor);
    other.metadata("image", image);
    other.write(folder_ / "other.safetensors");
    const Ended ended = run("other.safetensors -o m.onnx --model lenet");
    EXPECT_EQ(ended.code, 2) << image << ended.output;
    EXPECT_TRUE(ended.says("other.safetensors: damaged metadata: ")) << ended.output;
  }
}

TEST_F(Export, ComparesWeightsBeforeItAllocatesMemoryForImages) {
  const SafetensorsReader weights(folder_ / "run/checkpoints/step-00000001/model.safetensors");
  SafetensorsWriter other;
  for (const auto& [name, tensor] : weights.tensors()) other.add(name, tensor);
  other.metadata("image", "[4096,4096,4096]");  // terabytes, if the weights were for them
  other.write(folder_ / "other.safetensors");
  const Ended ended = run("other.safetensors -o m.onnx --model lenet");
  EXPECT_EQ(ended.code, 2) << ended.output;
  EXPECT_TRUE(ended.says("[weights] other.safetensors: ")) << ended.output;
}

TEST_F(Export, RefusesWrongInputInOneLineAndWritesNothing) {
  fs::create_directory(folder_ / "empty");
  std::ofstream(folder_ / "text.safetensors") << "this is no safetensors file";
  const size_t before = files();
  for (const char* arguments :
       {"none -o m.onnx", "empty -o m.onnx", "text.safetensors -o m.onnx", "-o m.onnx",
        "run -o missing/m.onnx", "run -o m.onnx --example missing/e.safetensors",
        "run -o m.onnx --model resnet", "run -o m.onnx --image-size 8", "run -o m.onnx --fold",
        "run/config.json -o m.onnx", "run -o m.onnx --example run/config.json",
        "run -o m.onnx --example ./m.onnx",
        "run -o m.onnx --example run/checkpoints/step-00000001/momentum.safetensors"}) {
    const Ended ended = run(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << ": " << ended.output;
    EXPECT_EQ(ended.lines(), 1u) << arguments << ": " << ended.output;
    EXPECT_TRUE(ended.output.starts_with("error: ")) << arguments << ": " << ended.output;
    EXPECT_EQ(files(), before) << arguments;
  }
  // the weights themselves
  const auto weights = folder_ / "weights.safetensors";
  fs::copy_file(folder_ / "run/checkpoints/step-00000001/model.safetensors", weights);
  const std::string bytes = text_of(weights);
  for (const char* arguments :
       {"-o weights.safetensors", "-o m.onnx --example ./weights.safetensors"}) {
    const Ended ended = run(fmt::format("weights.safetensors {}", arguments));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_TRUE(ended.says("has the weights to export; give another name")) << ended.output;
    EXPECT_EQ(text_of(weights), bytes);
  }
  fs::remove(weights);
  // a photograph
  write_bytes(folder_ / "photo.jpg", noise_jpeg(1, 8, 8));
  const std::string photo = text_of(folder_ / "photo.jpg");
  const Ended other = run("run -o photo.jpg");
  EXPECT_EQ(other.code, 2) << other.output;
  EXPECT_TRUE(other.says("photo.jpg exists and is not an ONNX file: name another file or remove"));
  EXPECT_EQ(text_of(folder_ / "photo.jpg"), photo);
  fs::remove(folder_ / "photo.jpg");
  // weights of another network: a line for each tensor
  EXPECT_EQ(run("run -o m.onnx --model mlp").code, 2);
  EXPECT_EQ(files(), before);
}

}  // namespace
}  // namespace tw::test
