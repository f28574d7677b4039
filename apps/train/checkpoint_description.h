// The description of a run in the metadata of a checkpoint's model.safetensors, and the names of
// its classes.
#pragma once

#include <map>
#include <string>

#include "apps/train/checkpoint.h"
#include "comm/communicator.h"
#include "data/dataset.h"
#include "engine/io/safetensors.h"

namespace tw {

/// What the description says, and how this run differs from it.
struct Saved {
  Resumed resumed;
  int64_t ranks = 0;
  int64_t batch = 0;             ///< images of a rank and step
  std::string other_experiment;  ///< how this run is another experiment; empty if it is not
  TrainConfig before;            ///< this configuration with the options of the checkpoint
};

/// The metadata of a checkpoint at this position.
std::map<std::string, std::string> describe(const TrainConfig& config, const Position& at,
                                            int ranks);

/// Verifies and reads the description. UserError on a damaged one, and where an essential option of
/// this run differs.
Saved description_in(const SafetensorsReader& weights, const std::filesystem::path& checkpoint,
                     const TrainConfig& config);

constexpr const char* kStatistics = "statistics";  ///< the vector of those of batch norm
/// `a, b and c are` or `a is`, of vectors of a checkpoint in words.
std::string subject(const std::vector<std::string>& names);
/// That these vectors are the mean of `ranks` ranks; empty if there are none.
std::string averaged(const std::vector<std::string>& names, int64_t ranks);
/// Adds a clause to a notice.
void add_notice(std::string& notice, const std::string& text);

/// UserError unless the outputs of these weights, by the names in their metadata, are the classes
/// of the run. Returns a note for the user where names are missing; else an empty text.
std::string check_classes(const SafetensorsReader& weights, const TrainConfig& config);

/// The data of --class-map: their labels are outputs of the weights that the run, on P `ranks`,
/// begins with, and their classes are those of the weights. Collective. UserError when the weights
/// have no names, or a class of the data is not among them.
DataSplit map_classes(Communicator& comm, const TrainConfig& config, int ranks,
                      const DataSplit& data);

}  // namespace tw
