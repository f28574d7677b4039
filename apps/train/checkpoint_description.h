// The description of a run in the metadata of a checkpoint's model.safetensors.
#pragma once

#include <map>
#include <string>

#include "apps/train/checkpoint.h"
#include "engine/io/safetensors.h"

namespace tw {

/// What the description says, and how this run differs from it.
struct Saved {
  Resumed resumed;
  std::string sparsifier;
  int64_t ranks = 0;
  int64_t batch = 0;             ///< images of a rank and step
  std::string other_experiment;  ///< how this run is another experiment; empty if it is not
};

/// The metadata of a checkpoint at this position.
std::map<std::string, std::string> describe(const TrainConfig& config, const Position& at,
                                            int ranks);

/// Verifies and reads the description. UserError on a damaged one, and where an essential option of
/// this run differs.
Saved description_in(const SafetensorsReader& weights, const std::filesystem::path& checkpoint,
                     const TrainConfig& config);

/// Adds a clause to a notice.
void add_notice(std::string& notice, const std::string& text);

}  // namespace tw
