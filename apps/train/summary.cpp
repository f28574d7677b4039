#include "apps/train/summary.h"

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/common/version.h"
#include "apps/train/checkpoint.h"
#include "data/tally.h"
#include "data/wrappers.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/io/file.h"
#include "engine/io/json.h"
#include "engine/io/weights.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

/// A JSON number that reads well: 0.8123 rather than 0.81230000000000002.
double rounded(double value, int digits = 9) {
  return std::stod(fmt::format("{:.{}g}", value, digits));
}

/// A number with at most six digits; any other cell as it is.
std::string shortened(const std::string& cell) {
  const std::optional<double> value = number_in<double>(cell);
  return value ? fmt::format("{:.6g}", *value) : cell;
}

/// `run.changes` of an older config.json before `step`; later ones were undone.
Json changes_before(int64_t step, const Json& config) {
  const Json::json_pointer place("/run/changes");
  Json kept = Json::array();
  if (!config.is_object() || !config.contains(place) || !config[place].is_array()) return kept;
  for (const Json& change : config[place])
    if (change.is_object() && change.contains("step") && change["step"].is_number() &&
        change["step"] < step)
      kept.push_back(change);
  return kept;
}

/// The config.json of the run that is continued; null for a new run.
Json continued_config(const RunFolder& folder) {
  if (folder.checkpoint.empty()) return nullptr;
  const auto run = folder.checkpoint.parent_path().parent_path();
  return parse_json_if_valid<Json>(read_text_if_any(run / "config.json", kMostJson));
}

/// Says so if a threshold selector sent far from k entries.
void report_volume(Console& console, const TrainConfig& config, const StepRecord& run) {
  const std::string selector = resolve_sparsifier(config.sgd(), config.settings).selector;
  if (run.k <= 0 || config.density >= 1 || selector.empty() ||
      selectors().find(selector).value.volume(config.settings) != Volume::any)
    return;
  const double sent = run.nnz / run.k;
  if (sent < 0.5 || sent > 2)
    console.paragraph(
        "{} sent {:.2g} times the entries that were asked for (nnz_over_k): its threshold is an "
        "estimate",
        config.sparsifier, sent);
}

}  // namespace

void print_table(Console& console, const std::filesystem::path& metrics) {
  std::ifstream in(metrics);
  check<Fault>(in.is_open(), "[file] cannot read {}: {}", metrics.string(), std::strerror(errno));
  std::string line;
  std::getline(in, line);
  const std::vector<std::string> names = split(line, ',');
  std::vector<std::string> wanted = {"epoch",      "lr",        "density",  "train_loss",
                                     "train_top1", "val_loss",  "val_top1", "images_per_s",
                                     "seconds",    "nnz_over_k"};
  constexpr size_t kWidth = 13;
  for (const char* least : {"nnz_over_k", "seconds", "train_top1", "val_loss"})
    if (kWidth * wanted.size() > console.columns()) std::erase(wanted, least);
  std::string header = "\n";
  for (const std::string& name : wanted) header += fmt::format("{:>{}}", name, kWidth);
  while (std::getline(in, line)) {
    if (!header.empty()) console.line("{}", std::exchange(header, ""));
    const std::vector<std::string> cells = split(line, ',');
    std::string row;
    for (const std::string& name : wanted)
      for (size_t i = 0; i < names.size() && i < cells.size(); ++i)
        if (names[i] == name) row += fmt::format("{:>{}}", shortened(cells[i]), kWidth);
    console.line("{}", row);
  }
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

void check_finite(const ops::LossSums& val, const std::string& when) {
  check<CollectiveFault>(val.count == 0 || std::isfinite(val.loss),
                         "[train] the validation loss is {} {}", std::abs(val.loss), when);
}

RunResult result_of(const ops::LossSums& val, bool stopped) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  if (val.count == 0)
    return {.val_top1 = unknown, .val_top5 = unknown, .val_loss = unknown, .stopped = stopped};
  return {.val_top1 = share(val.top1, val.count),
          .val_top5 = share(val.top5, val.count),
          .val_loss = val.loss / static_cast<double>(val.count),
          .stopped = stopped};
}

std::string test_text(const RunSummary& summary) {
  return fmt::format("test top-1 {:.4f}{} on {}, by the weights of {}", summary.result.test_top1,
                     top5_text("  ", summary.result.test_top5, summary.classes), summary.test_name,
                     summary.test_weights);
}

void check_same_layout(Communicator& comm, const ParameterArena& arena) {
  const uint64_t mine = arena.layout_hash();
  int rank = 0;
  for (const uint64_t other : gather(comm, mine)) {
    check(other == mine, "[train] the networks of ranks {} and {} differ", rank, comm.rank());
    ++rank;
  }
}

uint64_t common_weights_hash(Communicator& comm, const ParameterArena& arena) {
  const uint64_t mine = weights_hash(arena);
  int rank = 0;
  for (const uint64_t other : gather(comm, mine)) {
    check<Fault>(other == mine, "[train] the weights of rank {} differ from those of rank {}", rank,
                 comm.rank());
    ++rank;
  }
  return mine;
}

Json normalisation_of(const TrainConfig& config) {
  const auto rounded_all = [](const std::vector<float>& values) {
    Json list = Json::array();
    for (const float value : values) list.push_back(rounded(static_cast<double>(value), 6));
    return list;
  };
  return {{"mean", rounded_all(config.mean)}, {"deviation", rounded_all(config.deviation)}};
}

void write_config(const RunFolder& folder, TrainConfig& config, const Communicator& comm,
                  int64_t steps_per_epoch, const Change& change) {
  Json json = config.json();
  const Json before = continued_config(folder);
  Json changes = changes_before(change.step, before);
  std::string text = change.text;
  if (before.is_object() && before.contains("link") && before["link"] != json["link"])
    text += fmt::format("{}link was {}, is now {}", text.empty() ? "" : "; ", before["link"].dump(),
                        json["link"].dump());
  if (!text.empty()) changes.push_back({{"step", change.step}, {"text", text}});
  json["run"] = provenance_json();
  json["run"].update({{"ranks", comm.size()},
                      {"transport", comm.transport()},
                      {"classes", config.class_names},
                      {"normalisation", normalisation_of(config)},
                      {"steps_per_epoch", steps_per_epoch},
                      {"changes", changes}});
  if (!folder.branched_from.empty()) json["run"]["branched_from"] = folder.branched_from;
  write_atomically(folder.file("config.json"), json.dump(2) + "\n");
}

void report_epoch(Console& console, int64_t epoch, int64_t epochs, const StepRecord& totals,
                  const ops::LossSums& val) {
  const double images = static_cast<double>(totals.images);
  const std::string validation =
      val.count > 0 ? fmt::format("  val top-1 {:.4f}  loss {:.4f}", share(val.top1, val.count),
                                  val.loss / static_cast<double>(val.count))
                    : "";
  console.paragraph("epoch {:>3}/{}  train loss {:.4f}  top-1 {:.4f}{}  {:.0f} images/s  {} sent",
                    epoch, epochs, totals.loss / images, share(totals.top1, totals.images),
                    validation, images / totals.seconds, bytes_text(totals.bytes));
}

void report_waiting(Console& console, const StepRecord& totals, bool decodes) {
  constexpr double kNoticeable = 0.05;
  const double waited = totals.phases.data, rest = totals.seconds - waited;
  if (waited < kNoticeable * totals.seconds || rest <= 0 || totals.seconds < 1) return;
  const double images = static_cast<double>(totals.images);
  console.line(
      "{:.0f} % of the time was spent waiting for data: {:.0f} images/s; without, {:.0f} (use more "
      "--loader-threads{})",
      100 * waited / totals.seconds, images / totals.seconds, images / rest,
      decodes ? "; image files load faster when packed" : "");
}

bool report_load(Console& console, double cores_taken, int threads_per_rank) {
  if (cores_taken < 0.5) return false;
  console.paragraph(
      "note: other programs took {:.1f} cores from this run during the epoch{}", cores_taken,
      threads_per_rank > 1 ? "; the threads of a rank wait for the slowest, and fewer "
                             "--threads-per-rank may be faster"
                           : "");
  return true;
}

std::optional<RunResult> finished_result(const std::string& summary, int64_t step,
                                         const std::string& test_name) {
  const Json json = parse_json_if_valid<Json>(summary);
  if (!json.is_object() || json.value("/stopped"_json_pointer, Json()) != false ||
      json.value("/steps"_json_pointer, Json()) != step)
    return std::nullopt;
  if (!test_name.empty() && json.value("/test_images"_json_pointer, Json()) != test_name)
    return std::nullopt;
  const auto number = [&](const char* key) {
    const auto found = json.find(key);
    return found != json.end() && found->is_number() ? found->get<double>()
                                                     : std::numeric_limits<double>::quiet_NaN();
  };
  return RunResult{.val_top1 = number("val_top1"),
                   .val_top5 = number("val_top5"),
                   .val_loss = number("val_loss"),
                   .test_top1 = number("test_top1"),
                   .test_top5 = number("test_top5")};
}

std::string continuing_command(const RunFolder& folder, const TrainConfig& config, int ranks) {
  if (const char* const run = std::getenv("THINWIRE_RUN")) return run;  // `thinwire run` itself
  if (!config.cell.empty()) return "the same command, which continues the sweep";
  if (!config.seeds.empty()) return "the same command and --resume auto, for the other seeds, too";
  return fmt::format("{}{} --resume {}",
                     ranks > config.workers && ranks > 1 ? fmt::format("mpirun -n {} ", ranks) : "",
                     shell_word(program_path()), shell_word(folder.path));
}

void write_summary(Console& console, const RunFolder& folder, const TrainConfig& config,
                   const Position& position, const RunSummary& summary, int ranks) {
  const RunResult& result = summary.result;
  const std::string hash = fmt::format("{:016x}", summary.weights_hash);
  const StepRecord& run = position.run;
  Json json = {{"val_top1", rounded(result.val_top1)},
               {"val_top5", rounded(result.val_top5)},
               {"val_loss", rounded(result.val_loss)},
               {"val_images", summary.val_name},
               {"stopped", result.stopped},
               {"epochs", position.epoch},
               {"steps", position.step},
               {"images", run.images},
               {"seconds", rounded(summary.seconds)},
               {"train_seconds", rounded(run.seconds)},
               {"images_per_s",
                rounded(run.seconds > 0 ? static_cast<double>(run.images) / run.seconds : 0)},
               {"bytes_sent", static_cast<int64_t>(run.bytes)},
               {"nnz_over_k", rounded(run.k > 0 ? run.nnz / run.k : 0)},
               {"seed", config.seed},
               {"classes", config.class_names},
               {"weights_hash", hash},
               {"build", provenance_json()}};
  const bool tested = !summary.test_name.empty();
  if (tested)
    json.update({{"test_top1", rounded(result.test_top1)},
                 {"test_top5", rounded(result.test_top5)},
                 {"test_images", summary.test_name},
                 {"test_weights", summary.test_weights}});
  write_atomically(folder.file("summary.json"), json.dump(2) + "\n");
  print_table(console, folder.file("metrics.csv"));
  if (result.stopped) {
    console.line("\nstopped by a signal at step {}; continue with {}", position.step,
                 continuing_command(folder, config, ranks));
    return;
  }
  const std::string validation =
      std::isnan(result.val_top1)
          ? "not validated"
          : fmt::format("top-1 {:.4f}{} on {}", result.val_top1,
                        top5_text("  ", result.val_top5, summary.classes), summary.val_name);
  // the bytes are those of the whole run
  const std::string time = summary.resumed
                               ? fmt::format("{} of training, {} since it resumed",
                                             clock_text(run.seconds), clock_text(summary.seconds))
                               : clock_text(summary.seconds);
  report_volume(console, config, run);
  console.paragraph("\n{}  in {}  {} sent  weights {}", validation, time, bytes_text(run.bytes),
                    hash);
  if (tested) console.paragraph("{}", test_text(summary));
  console.line("results in {}", folder.path.string());
}

void SkippedImages::report(Communicator& comm, const DataSplit& data, Console& console) {
  std::string mine;
  if (data.skipped)
    for (const SkipLog::Entry& entry : data.skipped->take())
      mine += fmt::format("{}/{}\n", entry.class_name, entry.description);
  std::set<std::string> fresh;  // sorted: the first of a class does not depend on the threads
  for (const std::string& text : gather_texts(comm, mine)) {
    std::istringstream lines(text);
    // several ranks may skip the same image
    for (std::string line; std::getline(lines, line);)
      if (lines_.insert(line).second) fresh.insert(line);
  }
  if (fresh.empty()) return;
  Tally by_class;
  for (const std::string& line : fresh) {
    const size_t slash = line.find('/');  // the name of a class has none
    by_class.add(line.substr(0, slash), line.substr(slash + 1));
  }
  console.line("{}{} skipped so far", skipped_text(by_class),
               counted(std::ssize(lines_), "damaged image"));
}

}  // namespace tw
