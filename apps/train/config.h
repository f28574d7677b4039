// TrainConfig: all options of a training run, with their defaults.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/common/comm_setup.h"
#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "engine/core/settings.h"
#include "engine/core/shape.h"
#include "models/registry.h"
#include "sparsify/sparsifier.h"

namespace tw {

enum class Shuffle { full, shards };
constexpr auto words(Shuffle) { return std::array{"full", "shards"}; }
enum class LrScaling { none, linear };
constexpr auto words(LrScaling) { return std::array{"none", "linear"}; }
enum class LrSchedule { step, cosine, constant };
constexpr auto words(LrSchedule) { return std::array{"step", "cosine", "constant"}; }
enum class Recompute { none, blocks };
constexpr auto words(Recompute) { return std::array{"none", "blocks"}; }
enum class Switch { on, off };
constexpr auto words(Switch) { return std::array{"on", "off"}; }
constexpr auto words(Scope) { return std::array{"model", "layer"}; }

/// The batch-norm statistics that a validation normalises with.
struct BnStats {
  /// Images to recompute them of by default. More are no closer to all of them (docs/results.md).
  static constexpr int64_t kImages = 2048;

  bool of_rank_0 = false;  ///< the running ones of rank 0, not their mean over the ranks
  int64_t images = 0;      ///< of training, of which they are computed anew; 0: they are not

  /// UserError where the value of --bn-stats is none.
  explicit BnStats(const std::string& value);
  /// Batches of `batch` images to compute them of, from `samples` training images: `images` rounded
  /// up to whole batches, at most the whole batches of an epoch. UserError when there is none.
  int64_t batches(int64_t batch, size_t samples) const;
};

/// A key of "sweep" in a configuration and its values, as a JSON list.
struct SweepKey {
  std::string key;
  Json values;
};

struct TrainConfig {
  // model and data
  std::string model = kResnet20;
  bool model_given = false;  ///< not an option: whether a flag or a file set model
  std::string model_reason;  ///< not an option: why choose_model() took it; empty: it did not
  std::string dataset = "auto";
  std::string data_dir;
  int64_t val_size = 0;
  std::optional<double> val_split;
  std::string test_dir;
  int64_t classes = 0;
  bool zero_init = false;
  std::string pretrained;
  bool reset_head = false;
  std::string class_map;
  std::string freeze;
  int64_t batch_size = 32;
  int64_t accumulate = 1;
  int64_t loader_threads = 1;
  int64_t image_size = 0;
  double colour_jitter = 0;
  bool exif_orientation = false;
  BadImages bad_images = BadImages::fail;
  Shuffle shuffle = Shuffle::full;

  // sparsifier
  std::string sparsifier = kDense;
  std::string selector;
  std::string exchange;
  std::optional<Scope> scope;  ///< without a choice, as for momentum_correction: the sparsifier's
  std::optional<Switch> momentum_correction;
  double bucket_mib = static_cast<double>(SgdConfig{}.bucket_bytes) / 0x1p20;
  bool overlap = false;
  bool measure_wait = false;
  double density = kDensity;
  std::optional<std::vector<double>> density_warmup;  ///< resolve_warmup() sets both
  std::string density_of;
  bool no_error_feedback = false;
  double residual_decay = 1;
  bool ef21 = false;
  Settings settings;

  // optimisation
  int64_t epochs = 10;
  int64_t max_steps = 0;
  double lr = 0.1;
  bool lr_given = false;  ///< not an option: whether a flag or a file set lr
  std::string lr_reason;  ///< not an option: where choose_rate() has lr from, if not the default
  LrScaling lr_scaling = LrScaling::none;
  LrSchedule lr_schedule = LrSchedule::cosine;
  std::vector<int64_t> lr_milestones{81, 122, 155};
  std::optional<double> warmup_epochs;
  double warmup_from = 0;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 1e-4;
  bool decay_all = false;
  double label_smoothing = 0;
  int64_t local_steps = 1;
  double outer_lr = 0;
  double outer_momentum = 0;
  int64_t seed = 1;
  std::vector<int64_t> seeds;

  // machine
  std::optional<Precision> precision;  ///< Run sets it, and device
  std::optional<Device> device;
  bool deterministic = false;
  int64_t workers = 0;
  int64_t threads_per_rank = 0;
  CommOptions comm;
  Recompute recompute = Recompute::none;

  // run
  std::string output_dir = "runs";
  std::string name;
  std::optional<int64_t> eval_every = 1;  ///< none: never
  int64_t checkpoint_every = 1;
  int64_t checkpoint_steps = 0;
  double checkpoint_minutes = 10;
  int64_t keep_checkpoints = 2;
  bool keep_best = false;
  int64_t analyze_every = 0;
  int64_t save_gradients = 0;
  bool tensorboard = false;
  bool quiet = false;
  std::string log, folders;
  std::string bn_stats = "average";  ///< BnStats reads it
  std::string resume;
  bool eval_only = false;
  bool dry_run = false, plan_json = false;
  bool list = false;
  std::string config;

  // not options
  std::vector<float> mean, deviation;    ///< how the images are normalised, per channel
  Shape image;                           ///< height, width and channels of an image
  std::vector<size_t> images;            ///< number of those to train on, and to validate on
  std::vector<std::string> class_names;  ///< of the outputs of the network; empty: unknown
  std::vector<std::string> flags;        ///< the options and settings given on the command line
  std::vector<std::string> changed;      ///< the options that the file of --config changes
  std::vector<SweepKey> sweep;           ///< of the configuration, without options given as flags
  std::string cell;                      ///< the values of this run of a sweep, as text
  int64_t ranks_before = 0;              ///< of the run whose config.json is --config; 0: unknown
  bool branches = false;  ///< --resume PATH with --name: continues in a folder of its own

  /// Flags, JSON keys, help and rules of all members above.
  OptionTable table();
  /// The configuration for config.json, without options of a single call (--resume, --list, ...).
  Json json();
  /// Whether the command line gives this option or setting.
  bool is_flag(const std::string& option) const;
  /// Whether the command line gives this option, or the file of --config changes it.
  bool is_given(const std::string& option) const;
  /// Whether --resume names a run, or the last one is asked for.
  bool resumes_path() const { return !resume.empty() && !resumes_last(); }
  bool resumes_last() const { return resume == "auto"; }
  /// Whether ranks take local steps between exchanges (LocalSgd).
  bool is_local() const { return local_steps > 1 || outer_lr > 0 || outer_momentum > 0; }
  /// The part that the optimizer takes.
  SgdConfig sgd() const;
  /// Whether the ranks of the run form the nodes that kNodeSetting describes.
  bool forms_nodes() const;
};

/// The flags of a command line. UserError on a wrong one; HelpText for --help.
OptionTable::Given parse_flags(int argc, char** argv);
/// The config.json of the run that --resume names: its name, for errors, and its text.
struct RunOptions {
  std::string file{}, text{};  ///< both empty: there is none, or --config names another file
  std::string anew{};  ///< its folder, if it ended before its first checkpoint and begins anew
  std::string name{};  ///< of its folder
};
RunOptions read_run_options(const OptionTable::Given& given);

/// Defaults, then the JSON file of --config (or `run`), then flags. UserError on unknown names and
/// values out of range.
TrainConfig read_train_config(const OptionTable::Given& given, const RunOptions& run);
/// Sets one option or, with a dot in its name, a setting. UserError starts with `source`.
void set_option(TrainConfig& config, const std::string& key, const Json& value,
                const std::string& source);
/// An option or setting that decides the weights, of which `then` is another value than `now`.
struct Difference {
  std::string key;
  Json then, now;  ///< then: null where it was no option yet
  Effect effect;
};
/// The differences between `config` and the options of another run, from its config.json or a
/// checkpoint, in the order of declaration.
std::vector<Difference> differences(const Json& then, TrainConfig config);
/// Replaces `auto` by the values that follow from other options. UserError on unknown names and on
/// options that exclude each other.
void resolve(TrainConfig& config);
/// Sets model and image size of a run on image files, as far as they are not given, and says so in
/// model_reason: as in the run that --resume auto continues, if it has a name; else as in the
/// weights of --pretrained; else, where no model is given, by the images. For resolve().
void choose_model(TrainConfig& config);
/// Sets lr, which is not given, to the default of the model; in proportion to a batch below 256 for
/// image files and for pretrained weights. Says so in lr_reason. For resolve().
void choose_rate(TrainConfig& config);
/// UserError when --resume names a run without a checkpoint. For the rank that has the run folder.
void check_resume(const TrainConfig& config);

/// The name of a run with one of several seeds: NAME-s3.
std::string name_of_seed(const std::string& name, int64_t seed);

}  // namespace tw
