#include "apps/advise/config.h"

#include <algorithm>

#include "apps/advise/prediction.h"
#include "apps/common/comm_setup.h"
#include "apps/common/network_choice.h"
#include "engine/core/error.h"
#include "models/model.h"
#include "sparsify/sparsifier.h"

namespace tw {

OptionTable AdviseConfig::table() {
  OptionTable t;
  t.group("Model");
  t.add("model", model, "network", {.suggestions = models().names()});
  t.add("classes", classes, "outputs of the network", {.least = 1});
  t.add("image-size", image_size, "height and width of an image", {.least = 1, .most = 4096});
  t.add("batch-size", batch_size, "images per step and rank", {.least = 1});
  t.add("data-dir", data_dir,
        "folder of images or of another data set: takes the network, classes and image size as "
        "train would, as far as they are not given",
        {.traits = kLocal});
  t.add("parameters", parameters,
        "with --simulate: length of a flat vector used instead of a model", {.most = 4294967294.0});
  t.group("Sparsifier");
  t.add("density", density, "fraction of the gradient that is sent", {.least = 1e-12, .most = 1});
  t.add("local-steps", local_steps,
        "steps of local SGD between exchanges (train --local-steps); 1: none", {.least = 1});
  t.add("adapt-density", adapt_density,
        "also find a density of at least --density for each tensor (train --density-of) with this "
        "sparsifier",
        {.suggestions = sparsifiers().names()});
  t.add("bucket-mib", bucket_mib, "with --adapt-density: as train --bucket-mib", {.most = 1e6});
  t.add_settings(settings);

  t.group("Link");
  t.add("link", link,
        "RATE,LATENCY of the link, e.g. 1Gbit,0.4ms, or a file.json of links that are not alike; "
        "default: measured");
  t.add("ranks-per-node", ranks_per_node,
        std::string("ranks that share an emulated link; also the default of ") + kNodeSetting,
        {.least = 1, .most = 4096, .default_of = kNodeSetting});
  t.add("alpha", alpha, "seconds per message; 0: from --link, or measured");
  t.add("beta", beta, "seconds per element of 4 bytes; 0: from --link, or measured");

  t.group("Machine");
  t.add("simulate", simulate,
        "use given costs only, measure nothing; needs compute, --select and the link");
  t.add("compute", compute, "seconds of forward and backward; 0: measured");
  t.add("compute-profile", compute_profile,
        "file of `bench step --csv` on the machine that will train: replaces the measured compute",
        {.traits = kLocal});
  t.add("select", select, "with --simulate: seconds of a selection or compression");
  t.add("update", update,
        "with --simulate: seconds of the update of the parameters, with every sparsifier");
  t.add("gamma", gamma, "seconds to add an element; 0: measured");
  t.add("merge", merge, "seconds to merge a sparse entry; 0: measured");
  t.add("precision", precision, "arithmetic; auto: bf16 where the hardware has it",
        {.choices = {"auto", "f32", "bf16"}, .none = "auto"});
  t.add("workers", workers, "ranks, as threads of this process; 0: 1, or mpirun's -n",
        {.most = 4096});
  t.add("threads-per-rank", threads_per_rank, "CPU threads of a rank; 0: cores / ranks",
        {.most = 4096});
  t.add("comm-timeout", comm_timeout, "seconds that a rank waits for another; 0: no limit");
  t.add("rounds", rounds,
        "measurements of all costs; results are medians with a range from their spread",
        {.least = 1, .most = 100000});

  t.group("Output");
  t.add("ranks", ranks,
        "numbers of ranks to predict for; auto: as many as measure, or 2 to 64 if that is one",
        {.least = 1, .most = 65536, .empty_list = "auto"});
  t.add("max-loss", max_loss,
        "points of top-1 that a recommended sparsifier may have lost to dense SGD in training",
        {.most = 100});
  t.add(
      "to-accuracy", to_accuracy,
      "also print the seconds until this validation top-1, such as 0.8, by the epochs of finished "
      "trainings",
      {.most = 1, .excludes_least = true});
  t.add("epochs", epochs, "take accuracies of trainings of so many epochs only; 0: of any");
  t.add("accuracy", accuracy,
        "table of measured accuracies; default: configs/accuracy.csv as it was built in",
        {.traits = kLocal});
  t.add("csv", csv, "also write the predictions to this file, for thinwire plot",
        {.traits = kLocal});
  return t;
}

AdviseConfig parse_advise_config(int argc, char** argv) {
  AdviseConfig config;
  config.settings = default_settings();
  OptionTable table = config.table();
  table.parse_and_set(argc, argv, "advise: predicts which sparsifier is fastest on a link");
  models().find(config.model);
  if (!config.data_dir.empty()) {
    const bool sized = table.is_set("image-size");
    const auto [model, spec] = network_for_data(
        config.data_dir, table.is_set("model") ? config.model : "", sized ? config.image_size : 0);
    config.model = model;
    if (!table.is_set("classes")) config.classes = spec.classes;
    if (!sized) config.image_size = spec.image[0];
  }
  allowed_sums(config.settings);
  if (!config.link.empty()) {
    const Topology link = read_link(config.link, table.is_set("ranks-per-node"),
                                    config.ranks_per_node, config.settings);
    check((link.uniform() && !link.has_slow_ranks()) || (config.alpha == 0 && config.beta == 0),
          "[options] alpha and beta are for links and ranks that are alike; those of {} are not",
          config.link);
    if (link.ranks_per_node == 1)
      for (const Topology::Ports& rack : link.racks)
        config.settings.set_default(kNodeSetting, std::to_string(rack.last - rack.first + 1));
  }
  check(config.settings.integer(kNodeSetting) > 0,
        "[options] {} is 0; expected the ranks on each machine of the predictions", kNodeSetting);
  std::ranges::sort(config.ranks);
  config.ranks.erase(std::ranges::unique(config.ranks).begin(), config.ranks.end());
  check(config.compute == 0 || config.compute_profile.empty(),
        "[options] compute and compute-profile exclude each other");
  check(config.compute_profile.empty() || config.parameters == 0,
        "[options] compute-profile is for a model; it excludes --parameters");
  check(config.adapt_density.empty() || config.compute == 0,
        "[options] adapt-density needs the seconds of backward by tensor, measured or from "
        "--compute-profile; it excludes --compute");
  check(!config.adapt_density.empty() || !table.is_set("bucket-mib"),
        "[options] bucket-mib needs --adapt-density");
  if (config.simulate) {
    check(config.compute > 0 || !config.compute_profile.empty(),
          "[options] simulate needs --compute, the seconds of one rank's step, or "
          "--compute-profile");
    check(table.is_set("select"),
          "[options] simulate needs --select, the seconds of a selection (0: none)");
    check((config.gamma > 0) == (config.merge > 0),
          "[options] simulate needs --gamma and --merge together or neither: one alone charges "
          "only dense or only sparse sums");
    check(!config.link.empty() || (config.alpha > 0 && config.beta > 0),
          "[options] simulate needs the link: --link, or --alpha and --beta");
    check(config.workers == 0, "[options] workers is not for --simulate, which starts no ranks");
  } else {
    check(config.parameters == 0, "[options] parameters needs --simulate");
    check(config.select == 0, "[options] select needs --simulate; otherwise it is measured");
    check(config.update == 0, "[options] update needs --simulate; otherwise it is measured");
  }
  return config;
}

std::optional<Topology> topology_of(const AdviseConfig& config) {
  if (config.link.empty()) return std::nullopt;
  Topology topology = parse_link(config.link, static_cast<int>(config.ranks_per_node));
  if (topology.uniform() && !topology.has_slow_ranks()) return std::nullopt;
  return topology;
}

}  // namespace tw
