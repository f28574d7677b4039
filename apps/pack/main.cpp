// pack: writes the images of a folder into one record file.
#include <algorithm>
#include <thread>

#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "data/imagenet/record_file.h"

namespace {

using namespace tw;

struct PackConfig {
  std::string dir, file;
  BadImages bad_images = BadImages::fail;
  int64_t seed = 1, threads = std::max(1u, std::thread::hardware_concurrency());
  PackOptions options;

  OptionTable table();
};

OptionTable PackConfig::table() {
  OptionTable t;
  t.group("Files");
  t.add("data-dir", dir,
        "folder as train takes it: with train and val, or train, or class folders; also: pack DIR",
        {.required = true, .positional = true});
  t.add("output", file, "record file to write", {.required = true});
  t.group("Images");
  t.add("resize", options.resize,
        "shrink images whose shorter side is longer than this; 0: keep all bytes", {.most = 65500});
  t.add("quality", options.quality, "JPEG quality of shrunk images", {.least = 1, .most = 100});
  t.add("seed", seed, "seed of the random order of the training images", {.most = 1e18});
  t.add("bad-images", bad_images, "end the program at a damaged image, or leave it out");
  t.group("Machine");
  t.add("threads-per-rank", threads, "CPU threads", {.least = 1, .most = 1024});
  return t;
}

int run(int argc, char** argv) {
  PackConfig config;
  OptionTable table = config.table();
  table.parse_and_set(argc, argv, "pack: the images of a folder into one checksummed record file");
  check(config.options.resize > 0 || !table.is_set("quality"),
        "[options] quality is for shrunk images; without --resize all keep their bytes");
  config.options.seed = static_cast<uint64_t>(config.seed);
  config.options.threads = static_cast<int>(config.threads);
  config.options.skip_bad = config.bad_images == BadImages::skip;
  config.options.stop = &stop_signal();
  const PackReport report = pack_image_folder(config.dir, config.file, config.options);
  if (!report.left_out.empty()) fmt::print("data not read: {}\n", report.left_out);
  fmt::print("{}", skipped_text(report.skipped));
  fmt::print("{}: {} training and {} validation images, {} of them shrunk, {} damaged, {}\n",
             config.file, report.train, report.val, report.resized, report.skipped.count(),
             bytes_text(static_cast<double>(report.bytes)));
  if (report.val == 0)
    fmt::print("no val is in it: train holds out a tenth of each class (--val-split)\n");
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program(argv, [&](tw::Communicator&) { return run(argc, argv); });
}
