#include "apps/bench/data.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench/libjpeg_baseline.h"
#include "apps/common/median.h"
#include "data/imagenet/image_folder.h"
#include "data/loader.h"
#include "engine/core/stopwatch.h"

namespace tw {

namespace {

struct DataBench {
  std::string dir, records;
  int64_t image_size = 224, batch_size = 32;
  int threads = 1, epochs = 5;
};

/// Images/s of one training epoch's batches.
double loader_epoch(Loader& loader, uint32_t epoch, int64_t batch) {
  Stopwatch watch;
  loader.start(epoch);
  for (int64_t b = 0; b < loader.batches(); ++b) loader.next();
  return static_cast<double>(loader.batches() * batch) / watch.total();
}

/// What the process holds now; the most it ever held would not show memory that is given back.
double resident_mib() {
  double pages = 0;
  std::ifstream("/proc/self/statm") >> pages >> pages;  // the second number
  return pages * static_cast<double>(::sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void run(const DataBench& bench) {
  const ImageFolder folder(std::filesystem::path(bench.dir) / "train");
  std::vector<std::string> files(folder.size());
  for (size_t i = 0; i < files.size(); ++i) files[i] = folder.name(i);
  const auto open = [&](const std::string& path) {
    return datasets().find("imagefolder").value({.dir = path, .image_size = bench.image_size});
  };
  const LoaderConfig config{.batch = bench.batch_size, .threads = bench.threads};
  Loader from_folder(open(bench.dir).train, config);
  std::unique_ptr<Loader> from_records;
  if (!bench.records.empty())
    from_records = std::make_unique<Loader>(open(bench.records).train, config);

  // interleaved; the first round warms caches up
  std::vector<double> bare, folders, records, memory;
  for (int epoch = -1; epoch < bench.epochs; ++epoch) {
    const auto number = static_cast<uint32_t>(epoch + 1);
    const double of_folder = loader_epoch(from_folder, number, bench.batch_size);
    const double of_records =
        from_records ? loader_epoch(*from_records, number, bench.batch_size) : 0;
    const double of_bare = bare_decoding(files, static_cast<int>(bench.image_size), bench.threads);
    if (epoch < 0) continue;
    bare.push_back(of_bare);
    folders.push_back(of_folder);
    records.push_back(of_records);
    memory.push_back(resident_mib());
  }
  nlohmann::ordered_json result = {{"files", files.size()},
                                   {"threads", bench.threads},
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
  command->add_option("--threads", bench->threads, "threads of the loader, and of the bare loop")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->add_option("--epochs", bench->epochs, "epochs that count")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  command->callback([bench] { run(*bench); });
}

}  // namespace tw
