// The network that `export` writes: where its weights are, and what the file says about them.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "engine/io/safetensors.h"
#include "models/model.h"

namespace tw {

/// What the metadata of weights leaves open.
struct SourceOptions {
  std::filesystem::path path;  ///< a run, one of its checkpoints, or a safetensors file
  std::string model;           ///< empty: as the metadata says
  int64_t image_size = 0;      ///< side of the images; 0: as the metadata says
};

struct ExportSource {
  SafetensorsReader weights;
  std::string model;
  ModelSpec spec;
  std::vector<float> mean, deviation;  ///< of the images, per channel
  std::string dropped_prefix;          ///< of the names of the weights: drop_prefix()
};

/// UserError when there are no weights, or when neither they nor `options` name a network that
/// they fit.
ExportSource find_source(const SourceOptions& options);

}  // namespace tw
