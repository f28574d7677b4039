// export: writes the network of a run as an ONNX file.
#include "apps/common/checkpoint_folder.h"
#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "apps/common/options.h"
#include "apps/common/outputs.h"
#include "apps/common/resolve.h"
#include "apps/common/trained_network.h"
#include "apps/export/example.h"
#include "apps/export/onnx.h"
#include "engine/io/file.h"
#include "engine/io/weights.h"

namespace {

using namespace tw;

struct ExportConfig {
  std::string run, output, model, example;
  int64_t image_size = 0;
  bool fold_batch_norm = false;

  OptionTable table();
};

OptionTable ExportConfig::table() {
  OptionTable t;
  t.group("Files");
  t.add("run", run,
        "folder of a run or checkpoint, or a safetensors file; also without the flag: export RUN",
        {.required = true, .positional = true});
  t.add("output", output, "ONNX file to write; default: NAME.onnx for the run NAME",
        {.letter = 'o'});
  t.add("example", example,
        "also write random images and their logits to this safetensors file, to check a runtime");
  t.group("Network");
  t.add("fold-batch-norm", fold_batch_norm,
        "make each batch norm part of the convolution before it");
  t.add("model", model, "network, for files that do not name it (see train --list)",
        {.suggestions = models().names()});
  t.add("image-size", image_size, "side of the images in pixels; 0: as in training",
        {.most = 4096});
  return t;
}

/// lenet.onnx for the run runs/lenet and for a file lenet.safetensors, in the working folder.
std::string default_output(const std::string& run) {
  namespace fs = std::filesystem;
  fs::path path = fs::absolute(run).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();  // a slash at the end
  return (fs::is_directory(path) ? path.filename() : path.stem()).string() + ".onnx";
}

/// UserError unless the folder of `path` exists.
void check_folder(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  check(folder.empty() || std::filesystem::is_directory(folder),
        "[export] cannot write {}: {} is not a folder", path, folder.string());
}

/// UserError where an example would take the place of another file.
void check_example(const std::string& example, const std::string& output) {
  if (example.empty()) return;
  check(!same_place(example, output), "[export] output and example are both {}", output);
  std::error_code ignored;
  const auto kind = std::filesystem::status(example, ignored).type();
  if (kind == std::filesystem::file_type::not_found) return;
  const bool file = kind == std::filesystem::file_type::regular;
  check(file && (std::filesystem::file_size(example) == 0 ||
                 read_weights_file(example, "export").has("logits")),
        "[file] {} exists and is not an example: name another file or remove it", example);
}

/// UserError where an output is the file of the weights.
void check_other_file(const std::string& output, const std::filesystem::path& weights) {
  std::error_code ignored;
  check(!std::filesystem::equivalent(output, weights, ignored),
        "[export] {} has the weights to export; give another name", output);
}

int run(int argc, char** argv) {
  ExportConfig config;
  config.table().parse_and_set(
      argc, argv,
      fmt::format("export: the network of a run as an ONNX file, opset {}", kOnnxOpset));
  if (config.output.empty()) config.output = default_output(config.run);
  check_folder(config.output);
  check_folder(config.example);
  const TrainedNetwork network = open_network(
      {.path = config.run, .model = config.model, .image_size = config.image_size}, "export");
  const SafetensorsReader& weights = network.weights;
  for (const std::string& file : {config.output, config.example})
    check_other_file(file, weights.path());
  check_replaceable(config.output, kOnnxStart, "an ONNX file");
  check_example(config.example, config.output);
  if (!network.dropped_prefix.empty())
    fmt::print("the names in {} begin with {}, which is dropped\n", weights.path().string(),
               network.dropped_prefix);
  Context ctx(Device::cpu, resolve_threads(0, 1));
  constexpr int64_t kExamples = 4;
  const std::unique_ptr<Model> model = load_network(ctx, network, kExamples);

  OnnxConfig onnx{.name = network.model,
                  .image = network.spec.image,
                  .classes = network.spec.classes,
                  .fold_batch_norm = config.fold_batch_norm};
  onnx.metadata["input"] = "images as (N, channels, height, width), ";
  onnx.metadata["input"] +=
      network.spec.image[2] == 1 ? "one gray channel" : "channels red, green, blue";
  if (network.normalised) {
    onnx.metadata["input"] += ", each (pixel / 255 - mean) / deviation";
    onnx.metadata["normalisation"] = weights.metadata().at("normalisation");
  }
  if (const auto& about = weights.metadata(); about.contains("classes"))
    onnx.metadata["classes"] = about.at("classes");  // a JSON list of their names
  const std::string file = onnx_file(
      model->graph(),
      {.parameters = model->arena().values(), .statistics = model->arena().statistic_values()},
      onnx);
  if (!config.example.empty())
    write_example(ctx, *model, network.mean, network.deviation, config.example);
  write_output(config.output, file);
  fmt::print("{}: {} for images of {} x {}, {} classes, ONNX opset {}, {}\n", config.output,
             network_for(network.model, network.spec.image), network.spec.image[0],
             network.spec.image[1], network.spec.classes, kOnnxOpset,
             bytes_text(static_cast<double>(file.size())));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) { return run(argc, argv); });
}
