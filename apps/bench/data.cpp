#include <unistd.h>

#include <atomic>
#include <exception>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "apps/bench/subcommands.h"
#include "apps/common/measurements.h"
#include "data/image/resample.h"
#include "data/imagenet/image_folder.h"
#include "data/loader.h"
#include "engine/core/stopwatch.h"

namespace tw {

namespace {

struct DataOptions {
  std::string dir, records;
  int64_t image_size = 224, batch_size = 32, threads = 1, epochs = 5;
};

/// Images/s of one training epoch's batches.
double loader_epoch(Loader& loader, uint32_t epoch, int64_t batch) {
  Stopwatch watch;
  loader.start(epoch);
  for (int64_t b = 0; b < loader.batches(); ++b) loader.next();
  return static_cast<double>(loader.batches() * batch) / watch.total();
}

/// Images/s of threads that decode all of each file at its full size and resize it: a baseline for
/// the loader, which decodes only the crop, at a reduced scale where that is enough.
double whole_images_per_second(const ImageFolder& folder, int side, int threads) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> errors(static_cast<size_t>(threads));
  Stopwatch watch;
  std::vector<std::jthread> pool;
  for (std::exception_ptr& error : errors)
    pool.emplace_back([&] {
      try {
        ImageDecoder decoder;
        Resampler resampler;
        std::vector<std::byte> buffer;
        std::vector<uint8_t> pixels(static_cast<size_t>(side) * static_cast<size_t>(side) * 3);
        for (size_t i; (i = next++) < folder.size();) {
          const ImageSize size = decoder.open(folder.read(i, buffer));
          const Box whole{0, 0, double(size.width), double(size.height)};
          resampler.run(decoder.decode(whole, size.width, size.height), side, side, false, pixels);
        }
      } catch (...) {
        error = std::current_exception();
      }
    });
  pool.clear();  // joins
  for (const std::exception_ptr& error : errors)
    if (error) std::rethrow_exception(error);
  return static_cast<double>(folder.size()) / watch.total();
}

/// The process's current resident memory. The peak would not show memory that was freed.
double resident_mib() {
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second number
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void run_data(const DataOptions& options) {
  const ImageFolder folder(std::filesystem::path(options.dir) / "train");
  const auto open = [&](const std::string& path) {
    return datasets().find(kImageFolder).value({.dir = path, .image_size = options.image_size});
  };
  const int threads = static_cast<int>(options.threads);
  const LoaderConfig config{.batch = options.batch_size, .threads = threads};
  Loader from_folder(open(options.dir).train, config);
  std::unique_ptr<Loader> from_records;
  if (!options.records.empty())
    from_records = std::make_unique<Loader>(open(options.records).train, config);

  // interleaved; the first round warms up the caches
  std::vector<double> bare, folders, records, memory;
  for (int64_t epoch = -1; epoch < options.epochs; ++epoch) {
    const auto number = static_cast<uint32_t>(epoch + 1);
    const double of_folder = loader_epoch(from_folder, number, options.batch_size);
    const double of_records =
        from_records ? loader_epoch(*from_records, number, options.batch_size) : 0;
    const double of_bare =
        whole_images_per_second(folder, static_cast<int>(options.image_size), threads);
    if (epoch < 0) continue;
    bare.push_back(of_bare);
    folders.push_back(of_folder);
    records.push_back(of_records);
    memory.push_back(resident_mib());
  }
  nlohmann::ordered_json result = {{"files", folder.size()},
                                   {"threads", options.threads},
                                   {"bare_images_per_s", median(bare)},
                                   {"folder_images_per_s", median(folders)},
                                   {"folder_to_bare", median(folders) / median(bare)}};
  if (from_records) {
    result["records_images_per_s"] = median(records);
    result["records_to_folder"] = median(records) / median(folders);
  }
  result["rss_mib_by_epoch"] = memory;
  fmt::print("{}\n", result.dump());
}

}  // namespace

Subcommand bench_data() {
  auto [command, options] = subcommand(
      "data", "images per second of the loader, and of decoding and resizing whole images",
      run_data);
  OptionTable& t = command.table;
  t.group("Data");
  t.add("data-dir", options->dir, "folder that holds train and val",
        {.traits = kLocal, .required = true});
  t.add("records", options->records, "record file of the same images, written by pack");
  t.add("image-size", options->image_size, "height and width of an image",
        {.least = 1, .most = 65500});
  t.add("batch-size", options->batch_size, "images per batch", {.least = 1});
  t.group("Measurement");
  t.add("threads-per-rank", options->threads, "threads of the loader and of the decoding",
        {.least = 1, .most = 4096});
  t.add("epochs", options->epochs, "measured epochs", {.least = 1});
  return command;
}

}  // namespace tw
