// Data sets: those found, and whether their files are whole.
#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <ranges>

#include "apps/doctor/checkup.h"
#include "data/dataset.h"
#include "data/wrappers.h"
#include "engine/io/file.h"

namespace tw {

namespace {

constexpr const char* kCifar = "cifar-10-batches-bin";
constexpr size_t kSamples = 256;
constexpr std::chrono::seconds kTime(10);
using Clock = std::chrono::steady_clock;

/// Reads some samples, evenly spread, then all for as long as there is time; at least how many.
size_t read_samples(const Dataset& samples, Clock::time_point until) {
  std::vector<uint8_t> pixels(static_cast<size_t>(samples.image.numel()));
  const size_t size = samples.size(), spread = std::min(size, kSamples);
  for (size_t i = 0; i < spread; ++i) samples.get(i * size / spread, pixels);
  size_t read = spread == size ? size : 0;
  while (read < size && Clock::now() < until) samples.get(read++, pixels);
  return std::max(read, spread);
}

/// Images in memory are read whole; image files for some seconds, and those that are damaged named.
Finding read_data(const std::string& name, const std::filesystem::path& dir) {
  constexpr size_t kNamed = 5;
  Finding found{.name = "data"};
  found.details = {{"dataset", name}, {"folder", dir.string()}};
  const DatasetEntry& entry = datasets().find(name).value;
  const DataSplit split = entry({.dir = dir, .skip_bad = true});
  check_classes(split.train->classes, dir);
  const Clock::time_point until = Clock::now() + kTime;
  const size_t read = read_samples(*split.train, until) + read_samples(*split.val, until);
  const size_t images = split.train->size() + split.val->size();
  found.text =
      fmt::format("{} in {}: {} training and {} validation images of {} classes, {}", name,
                  dir.string(), split.train->size(), split.val->size(), split.train->classes,
                  entry.image_files ? fmt::format("{} of {} read", read, images) : "all whole");
  if (read < images) found.text += fmt::format(" in {} s (thinwire pack reads all)", kTime.count());
  if (!split.left_out.empty()) found.text += "; not read: " + split.left_out;
  found.details["train"] = split.train->size();
  found.details["val"] = split.val->size();
  found.details["not_read"] = split.left_out;
  std::vector<std::string> damaged;
  if (split.skipped)
    for (const SkipLog::Entry& one : split.skipped->take()) damaged.push_back(one.description);
  if (entry.survey && damaged.size() < read) {
    found.details["shorter_side"] = entry.survey({.dir = dir}).side;
    found.text += fmt::format("; the shorter side is about {} pixels",
                              found.details["shorter_side"].get<int64_t>());
  }
  if (damaged.empty()) return found;
  found.details["damaged"] = damaged;
  found.state = State::problem;
  found.text += fmt::format("; {} damaged: {}{}", damaged.size(),
                            fmt::join(damaged | std::views::take(kNamed), "; "),
                            damaged.size() > kNamed ? "; …" : "");
  found.cure = "copy what is damaged again, or train with --bad-images skip";
  return found;
}

}  // namespace

Findings check_data(const Checkup& checkup) {
  const std::string& given = checkup.config.data_dir;
  std::string name = kCifar10;
  const std::filesystem::path dir =
      given.empty() ? data_folder({}, kCifar) : std::filesystem::path(given);
  // the script makes the folder of the files inside that of its argument
  const std::filesystem::path above = data_folder(dir, kCifar).parent_path();
  const std::string download =
      fmt::format("thinwire get-cifar10 {}", above.empty() ? "." : shell_word(above));
  std::error_code ignored;
  if (given.empty() && !std::filesystem::exists(dir, ignored))
    return {{.name = "data",
             .state = State::note,
             .text = fmt::format("no data set: {} does not exist; without one, training uses the "
                                 "generated images of shapes",
                                 dir.string()),
             .cure = download + ", or name a folder with --data-dir",
             .details = {{"folder", dir.string()}}}};
  try {
    if (!given.empty()) name = dataset_of(given);
    return {read_data(name, dir)};
  } catch (const UserError& error) {
    const bool damaged = std::filesystem::exists(data_folder(dir, kCifar), ignored),
               other = std::filesystem::is_directory(dir, ignored) &&
                       !std::filesystem::is_empty(dir, ignored);
    const bool folders =
        datasets().find(name).value.image_files && std::filesystem::is_directory(dir, ignored);
    return {{.name = "data",
             .state = State::problem,
             .text = error.what(),
             .cure = name != kCifar10
                         ? folders ? "put every image into the folder of its class; if there are "
                                     "train and val, with the same classes in both"
                                   : "copy the file again"
                     : damaged ? fmt::format("remove {}, then {}",
                                             data_folder(dir, kCifar).string(), download)
                     : other   ? "name the folder of a data set with --data-dir"
                     : !nearest_beside(dir).empty() ? "name the folder that is there"
                                                    : download,
             .details = {{"dataset", name}, {"folder", dir.string()}}}};
  }
}

}  // namespace tw
