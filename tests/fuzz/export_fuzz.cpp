// Weights for `export`: with any metadata they name a network and images that they fit, or give a
// UserError. The input is the metadata: four texts, each ended by a line feed.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "apps/common/trained_network.h"
#include "engine/io/weights.h"
#include "tests/fuzz/support/input_folder.h"

namespace {

constexpr const char* kFile = "model.safetensors";
constexpr const char* kKeys[] = {"thinwire", "image", "normalisation", "classes"};

/// The weights of a small network.
class Weights {
 public:
  Weights() : folder_("export"), model_("lenet", {.classes = 10}) {
    model_.plan(ctx_, {.batch = 1});
    model_.allocate(ctx_, 1);
  }

  void export_with(std::string_view input) {
    std::map<std::string, std::string> metadata;
    for (const char* key : kKeys) {
      const size_t end = std::min(input.find('\n'), input.size());
      if (end > 0) metadata[key] = input.substr(0, end);
      input.remove_prefix(std::min(end + 1, input.size()));
    }
    try {
      tw::save_weights(folder_.path() / kFile, model_.arena(), metadata);
    } catch (const nlohmann::json::exception&) {  // a text that is not UTF-8 is not written
      return;
    }
    try {
      plan(tw::open_network({.path = folder_.path() / kFile}, "export"));
    } catch (const tw::UserError&) {
    }
  }

 private:
  /// As `export` does, up to the allocation.
  void plan(const tw::TrainedNetwork& network) {
    tw::Model model(network.model, network.spec);
    tw::check_weights(network.weights, model.arena());
    model.plan(ctx_, {.batch = 1, .mean = network.mean, .deviation = network.deviation});
  }

  tw::fuzz::InputFolder folder_;
  tw::Context ctx_;
  tw::Model model_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Weights weights;
  weights.export_with({reinterpret_cast<const char*>(data), size});
  return 0;
}
