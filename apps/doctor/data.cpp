// Data sets: those found, and whether their files are whole.
#include <filesystem>

#include "apps/doctor/checkup.h"
#include "data/dataset.h"

namespace tw {

namespace {

constexpr const char* kCifar = "cifar-10-batches-bin";
constexpr size_t kSamples = 256;

/// Reads some samples, evenly spread. BadSampleError at the first that is damaged.
size_t read_samples(const Dataset& samples) {
  std::vector<uint8_t> pixels(static_cast<size_t>(samples.image.numel()));
  const size_t count = std::min(samples.size(), kSamples);
  for (size_t i = 0; i < count; ++i) samples.get(i * samples.size() / count, pixels);
  return count;
}

/// Images in memory are read whole; of image files only some.
Finding read_data(const std::string& name, const std::filesystem::path& dir) {
  Finding found{.name = "data"};
  found.details = {{"dataset", name}, {"folder", dir.string()}};
  const DataSplit split = datasets().find(name).value({.dir = dir});
  const size_t read = read_samples(*split.train) + read_samples(*split.val);
  const size_t images = split.train->size() + split.val->size();
  found.text = fmt::format(
      "{} in {}: {} training and {} validation images of {} classes, {}", name, dir.string(),
      split.train->size(), split.val->size(), split.train->classes,
      datasets().find(name).value.image_files ? fmt::format("{} of {} read", read, images)
                                              : "all whole");
  if (!split.left_out.empty()) found.text += "; not read: " + split.left_out;
  found.details["train"] = split.train->size();
  found.details["val"] = split.val->size();
  found.details["not_read"] = split.left_out;
  return found;
}

}  // namespace

Findings check_data(const Checkup& checkup) {
  const std::string& given = checkup.config.data_dir;
  const std::string name = given.empty() ? kCifar10 : dataset_in(given, kCifar10);
  const std::filesystem::path dir =
      given.empty() ? data_folder({}, kCifar) : std::filesystem::path(given);
  // the script makes the folder of the files inside that of its argument
  const std::filesystem::path above = data_folder(dir, kCifar).parent_path();
  const std::string download =
      fmt::format("thinwire get-cifar10 {}", above.empty() ? "." : above.string());
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
    return {read_data(name, dir)};
  } catch (const UserError& error) {
    const bool damaged = std::filesystem::exists(data_folder(dir, kCifar), ignored),
               other = std::filesystem::is_directory(dir, ignored) &&
                       !std::filesystem::is_empty(dir, ignored);
    // an image that is damaged, or folders that are not those of a data set
    const bool image = dynamic_cast<const BadSampleError*>(&error) != nullptr,
               folders = datasets().find(name).value.image_files &&
                         std::filesystem::is_directory(dir, ignored) && !image;
    return {{.name = "data",
             .state = State::problem,
             .text = error.what(),
             .cure = name != kCifar10
                         ? folders ? "put every image into the folder of its class, in train and "
                                     "in val, with the same classes in both"
                           : image ? "copy the damaged file again, or train with --bad-images skip"
                                   : "copy the file again"
                     : damaged ? fmt::format("remove {}, then {}",
                                             data_folder(dir, kCifar).string(), download)
                     : other   ? "name the folder of a data set with --data-dir"
                               : download,
             .details = {{"dataset", name}, {"folder", dir.string()}}}};
  }
}

}  // namespace tw
