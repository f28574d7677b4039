#include "apps/support/bench_data.h"

#include <sys/resource.h>

#include <memory>
#include <nlohmann/json.hpp>

#include "apps/support/median.h"
#include "data/image_folder.h"
#include "data/loader.h"
#include "engine/stopwatch.h"

namespace tw {

namespace {

struct DataBench {
  std::string dir, records;
  int64_t image_size = 224, batch_size = 32;
  int threads = 1, epochs = 5;
};

/// Images/s of reading every file, decoding all of it at full size and resizing all of it.
double bare_loop(const ImageFolder& folder, int64_t image_size) {
  JpegDecoder decoder;
  Resampler resampler;
  std::vector<std::byte> buffer;
  const auto side = static_cast<int>(image_size);
  std::vector<uint8_t> pixels(static_cast<size_t>(3 * image_size * image_size));
  Stopwatch watch;
  for (size_t i = 0; i < folder.size(); ++i) {
    const auto size = decoder.open(folder.read(i, buffer));
    const Box whole{0, 0, static_cast<double>(size.width), static_cast<double>(size.height)};
    const Picture picture = decoder.decode(whole, size.width, size.height);
    resampler.run(picture, side, side, false, pixels);
  }
  return static_cast<double>(folder.size()) / watch.total();
}

/// Images/s of one training epoch's batches.
double loader_epoch(Loader& loader, uint32_t epoch, int64_t batch) {
  Stopwatch watch;
  loader.start(epoch);
  for (int64_t b = 0; b < loader.batches(); ++b) loader.next();
  return static_cast<double>(loader.batches() * batch) / watch.total();
}

double peak_mib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

void run(const DataBench& bench) {
  const ImageFolder folder(std::filesystem::path(bench.dir) / "train");
  const auto open = [&](const std::string& path) {
    return datasets().find("imagefolder").factory({.dir = path, .image_size = bench.image_size});
  };
  const LoaderConfig config{.batch = bench.batch_size, .threads = bench.threads};
  Loader from_folder(open(bench.dir).train, config);
  std::unique_ptr<Loader> from_records;
  if (!bench.records.empty())
    from_records = std::make_unique<Loader>(open(bench.records).train, config);

  // interleaved; the first round warms caches up
  std::vector<double> bare, folders, records, memory;
  for (int epoch = -1; epoch < bench.epochs; ++epoch) {
    const double of_bare = bare_loop(folder, bench.image_size);
    const auto number = static_cast<uint32_t>(epoch + 1);
    const double of_folder = loader_epoch(from_folder, number, bench.batch_size);
    const double of_records =
        from_records ? loader_epoch(*from_records, number, bench.batch_size) : 0;
    if (epoch < 0) continue;
    bare.push_back(of_bare);
    folders.push_back(of_folder);
    records.push_back(of_records);
    memory.push_back(peak_mib());
  }
  nlohmann::ordered_json result = {
      {"files", folder.size()},
      {"threads", bench.threads},
      {"bare_images_per_s_one_thread", median(bare)},
      {"folder_images_per_s", median(folders)},
      {"folder_to_bare_per_thread", median(folders) / median(bare) / bench.threads},
      {"peak_rss_mib_by_epoch", memory}};
  if (from_records) result["records_images_per_s"] = median(records);
  fmt::print("{}\n", result.dump());
}

}  // namespace

void add_bench_data(CLI::App& app) {
  const auto bench = std::make_shared<DataBench>();
  CLI::App* command = app.add_subcommand(
      "data", "images per second of the pipeline of photographs and of a bare decoding loop");
  command->add_option("--data-dir", bench->dir, "folder that holds train and val")->required();
  command->add_option("--records", bench->records, "the record file made of it");
  command->add_option("--image-size", bench->image_size, "side of the images")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--batch-size", bench->batch_size, "images a batch")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--threads", bench->threads, "threads of the loader")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--epochs", bench->epochs, "epochs that count")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->callback([bench] { run(*bench); });
}

}  // namespace tw
