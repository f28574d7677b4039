#include "apps/train/sweep.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/rank_utils.h"
#include "apps/train/run_folder.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace fs = std::filesystem;

namespace {

constexpr size_t kMostCells = 10000;

/// The value as a flag has it: 0.01, or 0.1,0.05 for a list.
std::string text_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  const std::string text = value.dump();
  return value.is_array() ? text.substr(1, text.size() - 2) : text;
}

/// `name` with the key and value of one option: NAME-density-0.01.
std::string named(const std::string& name, const std::string& key, const Json& value) {
  std::string suffix = fmt::format("-{}-{}", key, text_of(value));
  std::ranges::replace_if(
      suffix, [](unsigned char c) { return !std::isalnum(c) && c != '.' && c != '-' && c != '_'; },
      '_');
  return name + suffix;
}

/// What `use` makes of the object in a file; UserError, which names the file, when there is none or
/// its values have other types than those that `use` reads.
template <class Use>
auto from_json(const fs::path& path, const Use& use) {
  const Json found = parse_json<Json>(read_text(path, kMostJson), "[sweep] " + path.string());
  check(found.is_object(), "[sweep] {} holds no object", path.string());
  try {
    return use(found);
  } catch (const nlohmann::json::exception& error) {
    fail("[sweep] {} is damaged: {}", path.string(), error.what());
  }
}

/// UserError when the run has other options than `cell` that decide the weights.
void check_same_options(const fs::path& run, const TrainConfig& cell) {
  const auto all =
      from_json(run / "config.json", [&](const Json& then) { return differences(then, cell); });
  for (const auto& [key, then, now, effect] : all)
    // a run saves what these stood for
    check((key == "precision" && !cell.precision) ||
              (key == "threads_per_rank" && cell.threads_per_rank == 0),
          "[sweep] {} was trained with {} {}, now {}; choose another --name", run.string(), key,
          then.dump(), now.dump());
}

CellState state_of_run(const TrainConfig& cell, const std::string& name) {
  const fs::path run = fs::path(cell.output_dir) / name;
  if (!fs::exists(run / "config.json")) return CellState::absent;
  check_same_options(run, cell);
  if (!fs::exists(run / "summary.json")) return CellState::interrupted;
  return from_json(run / "summary.json", [&](const Json& summary) {
    const bool whole = integer_of(summary.value("epochs", Json(0))) >= cell.epochs,
               enough = cell.max_steps > 0 &&
                        integer_of(summary.value("steps", Json(0))) >= cell.max_steps;
    const bool ended = !summary.value("stopped", true) && (whole || enough);
    return ended ? CellState::finished : CellState::interrupted;
  });
}

/// The names of the runs of a combination, one for each seed.
std::vector<std::string> runs_of(const TrainConfig& cell) {
  if (cell.seeds.empty()) return {cell.name};
  std::vector<std::string> names;
  for (const int64_t seed : cell.seeds) names.push_back(name_of_seed(cell.name, seed));
  return names;
}

/// Accuracy and bytes of a run, from its summary.
std::string result_text(const fs::path& run) {
  if (!fs::exists(run / "summary.json")) return "no result";
  return from_json(run / "summary.json", [](const Json& summary) {
    const Json top1 = summary.value("val_top1", Json());
    return fmt::format(
        "{}  {} sent",
        top1.is_number() ? fmt::format("top-1 {:.4f}", top1.get<double>()) : "not validated",
        bytes_text(summary.value("bytes_sent", 0.0)));
  });
}

/// UserError when a seed is repeated: its run would count twice.
void check_seeds(std::vector<int64_t> seeds) {
  std::ranges::sort(seeds);
  const auto twice = std::ranges::adjacent_find(seeds);
  if (twice != seeds.end()) fail("[options] seeds has {} twice", *twice);
}

}  // namespace

std::vector<TrainConfig> parse_train_configs(const OptionTable::Given& given,
                                             const RunOptions& run) {
  TrainConfig base = read_train_config(given, run);
  check_seeds(base.seeds);
  if (base.sweep.empty()) {
    resolve(base);
    return {std::move(base)};
  }
  check(base.resume.empty() && !base.eval_only,
        "[sweep] a sweep continues its own runs; it excludes --resume and --eval-only");
  if (base.name.empty()) base.name = fs::path(base.config).stem().string();
  base.resume = "auto";

  std::vector<TrainConfig> cells{std::move(base)};
  const std::vector<SweepKey> keys = std::exchange(cells[0].sweep, {});
  for (const auto& [key, values] : keys) {
    check(key != "seed" || cells[0].seeds.empty(), "[sweep] the sweep has seed; it excludes seeds");
    check(cells.size() * values.size() <= kMostCells, "[sweep] more than {} combinations",
          kMostCells);
    std::vector<TrainConfig> next;
    for (const TrainConfig& cell : cells)
      for (const Json& value : values) {
        TrainConfig& one = next.emplace_back(cell);
        set_option(one, key, value, fmt::format("[sweep] {}", one.config));
        std::ranges::replace(one.changed.emplace_back(key), '_', '-');
        one.name = named(one.name, key, value);
        one.cell += fmt::format("{}{} {}", one.cell.empty() ? "" : ", ", key, text_of(value));
      }
    cells = std::move(next);
  }
  std::vector<std::string> names;
  for (TrainConfig& cell : cells) {
    try {
      resolve(cell);
    } catch (const UserError& error) {
      fail("[sweep] {}: {}", cell.cell, error.what());
    }
    check(std::ranges::find(names, cell.name) == names.end(),
          "[sweep] two combinations have the name {}", cell.name);
    names.push_back(cell.name);
  }
  return cells;
}

CellState state_of(const TrainConfig& cell) {
  if (cell.seeds.empty()) return state_of_run(cell, cell.name);
  bool any = false, all = true;
  for (const int64_t seed : cell.seeds) {
    TrainConfig one = cell;
    one.seed = seed;
    const CellState state = state_of_run(one, name_of_seed(cell.name, seed));
    any |= state != CellState::absent;
    all &= state == CellState::finished;
  }
  return all ? CellState::finished : any ? CellState::interrupted : CellState::absent;
}

std::vector<CellState> report_sweep(Communicator& world, Console& console,
                                    const std::vector<TrainConfig>& cells) {
  // the run folders may be on a disk of rank 0
  std::string states;
  run_collectively(world, [&] {
    if (world.rank() == 0)
      for (const TrainConfig& cell : cells) states += static_cast<char>('0' + int(state_of(cell)));
  });
  std::vector<CellState> result;
  for (const char state : broadcast_text(world, states))
    result.push_back(static_cast<CellState>(state - '0'));
  console.line(
      "sweep: {} runs{}", cells.size(),
      cells[0].seeds.empty() ? "" : fmt::format(", each with {} seeds", cells[0].seeds.size()));
  constexpr std::array<const char*, 3> kTexts{"to train", "to continue", "finished"};
  for (size_t i = 0; i < cells.size(); ++i)
    console.line("  {}  {}  ({})", cells[i].name, kTexts[static_cast<size_t>(result[i])],
                 cells[i].cell);
  return result;
}

void note_folders(const TrainConfig& cell) {
  for (const std::string& run : runs_of(cell)) note_folder(cell, fs::path(cell.output_dir) / run);
}

void report_results(Console& console, const std::vector<TrainConfig>& cells) {
  console.line("\nresults of the sweep:");
  for (const TrainConfig& cell : cells)
    for (const std::string& run : runs_of(cell))
      console.line("  {}  {}", run, result_text(fs::path(cell.output_dir) / run));
}

}  // namespace tw
