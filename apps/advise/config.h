// AdviseConfig: the options of `advise`, with their defaults.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/advise/comparison.h"
#include "apps/common/comm_setup.h"
#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "comm/link/topology.h"
#include "engine/core/settings.h"
#include "models/registry.h"

namespace tw {

struct AdviseConfig {
  // model
  std::string model = kResnet20;
  int64_t classes = 10, image_size = 32;
  std::string data_dir;
  int64_t batch_size = 32;
  int64_t parameters = 0;
  double density = kDensity;
  int64_t local_steps = 1;
  std::string adapt_density;
  double bucket_mib = 1;
  Settings settings;

  // link; 0: measured
  std::string link;
  int64_t ranks_per_node = 1;
  double alpha = 0, beta = 0;

  // machine; 0: measured
  bool simulate = false;
  double compute = 0, select = 0, update = 0, gamma = 0, merge = 0;
  std::string compute_profile;
  std::optional<Precision> precision;
  int64_t workers = 0, threads_per_rank = 0, rounds = 9;
  double comm_timeout = CommOptions{}.comm_timeout;

  // answer
  std::vector<int64_t> ranks{};  ///< empty: chosen when it is known how many measure
  double max_loss = AccuracyRules{}.max_loss, to_accuracy = 0;
  int64_t epochs = 0;
  std::string accuracy, csv;

  OptionTable table();
};

/// Throws UserError for unknown flags and values or combinations that are not possible.
AdviseConfig parse_advise_config(int argc, char** argv);
/// The links and ranks of --link if they are not alike.
std::optional<Topology> topology_of(const AdviseConfig& config);

}  // namespace tw
