// A trained network: where its weights are, and what their file says about it.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "apps/common/resolve.h"
#include "engine/io/safetensors.h"
#include "models/model.h"

namespace tw {

/// What the metadata of weights leaves open.
struct NetworkSource {
  std::filesystem::path path;  ///< a run, one of its checkpoints, or a safetensors file
  std::string model{};         ///< empty: as the metadata says
  int64_t image_size = 0;      ///< side of the images; 0: as the metadata says
};

struct TrainedNetwork {
  SafetensorsReader weights;
  std::string model;
  ModelSpec spec{};
  bool normalised = false;                 ///< whether the metadata has mean and deviation
  std::vector<float> mean{}, deviation{};  ///< of the images, per channel; 0 and 1 if unknown
  std::vector<std::string> class_names{};  ///< of the outputs; empty: unknown
  std::string dataset{};                   ///< that it was trained on; empty: unknown
  size_t validation_images = 0;            ///< 0: unknown
  bool exif_orientation = false;           ///< whether images were turned by their EXIF data
  BadImages bad_images = BadImages::fail;  ///< what its training does at a damaged image
  std::string dropped_prefix{};            ///< of the names of the weights: drop_prefix()

  /// Whether images lose their border in its validation (ImageOptions::crops_border): not those of
  /// data sets of small images.
  bool crops_border() const;
};

/// Opens the file of weights. UserError, which begins with [area], when there is none, or when
/// neither its metadata nor `source` name a network that it fits.
TrainedNetwork open_network(const NetworkSource& source, const char* area);

/// The model with these weights, ready for batches of `batch` images. UserError when a tensor is
/// missing, of another shape or damaged.
std::unique_ptr<Model> load_network(Context& ctx, const TrainedNetwork& network, int64_t batch,
                                    DType activations = DType::f32);

}  // namespace tw
