// Classifier: class probabilities of images by a trained network.
#pragma once

#include <functional>

#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "apps/common/trained_network.h"
#include "data/dataset.h"
#include "engine/core/context.h"

namespace tw {

/// Options of programs that classify images.
struct ClassifierOptions {
  std::string run, model;
  int64_t image_size = 0, batch_size = 64, threads = 0, loader_threads = 1;
  std::optional<Device> device;
  Precision precision = Precision::f32;
  std::optional<BadImages> bad_images;

  void add_run(OptionTable& table);
  void add_network(OptionTable& table);
  void add_machine(OptionTable& table);
};

/// Of tables of predictions.
inline constexpr const char* kImageColumn = "image";
/// UserError when --save cannot be written, or names a file that is no table of predictions, such
/// as an image or weights.
void check_save(const std::string& save);

class Classifier {
 public:
  /// UserError, which begins with [area], as open_network().
  Classifier(const ClassifierOptions& options, const char* area);

  const TrainedNetwork& network() const { return network_; }
  /// Takes this mean and deviation of the images, and says so, if the weights' file has none.
  void normalise_as(const std::vector<float>& mean, const std::vector<float>& deviation);
  /// Whether damaged images are left out; without a choice, as in training.
  bool skips_bad() const {
    return options_.bad_images.value_or(network_.bad_images) == BadImages::skip;
  }
  /// The names of the outputs: those of their classes, or their numbers.
  std::vector<std::string> class_names() const;

  /// Is given each sample with its label (-1: it is damaged and skipped) and the logit and the
  /// probability of each output, in the order of the samples. Small probabilities may be equal
  /// where logits are not.
  using Visit = std::function<void(size_t sample, int32_t label, std::span<const float> logits,
                                   std::span<const float> probabilities)>;
  /// UserError when the images have another size than the network's, or one is damaged, and as
  /// load_network(); CollectiveFault when an output is not finite.
  void classify(const std::shared_ptr<const Dataset>& images, const Visit& visit);

 private:
  const char* area_;
  ClassifierOptions options_;
  TrainedNetwork network_;
  Context ctx_;
};

}  // namespace tw
