// pack: an image folder into one record file.
#include <CLI/CLI.hpp>
#include <thread>

#include "apps/common/console.h"
#include "apps/common/launch.h"
#include "data/imagenet/record_file.h"

namespace {

void pack(const std::string& dir, const std::string& file, const tw::PackOptions& options) {
  const tw::PackReport report = tw::pack_image_folder(dir, file, options);
  for (const std::string& line : report.skipped) fmt::print("skipped {}\n", line);
  fmt::print("{}: {} training and {} validation images, {} of them shrunk, {} damaged, {}\n", file,
             report.train, report.val, report.resized, report.skipped.size(),
             tw::bytes_text(static_cast<double>(report.bytes)));
}

int run(tw::Communicator& world, int argc, char** argv) {
  CLI::App app(
      "packs train/<class>/*.JPEG and val/<class>/*.JPEG into one checksummed record file");
  std::string dir, file, bad = "fail";
  tw::PackOptions options;
  options.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  app.add_option("--data-dir", dir, "the folder that holds train and val")->required();
  app.add_option("--output", file, "the record file to write")->required();
  app.add_option("--resize", options.resize,
                 "shrink images whose shorter side is longer than this; 0: keep all bytes")
      ->capture_default_str()
      ->check(CLI::Range(0, 65500));
  app.add_option("--quality", options.quality, "JPEG quality of shrunk images")
      ->capture_default_str()
      ->check(CLI::Range(1, 100));
  app.add_option("--seed", options.seed, "of the order in the file")->capture_default_str();
  app.add_option("--bad-images", bad, "damaged images end it, or are left out")
      ->capture_default_str()
      ->check(CLI::IsMember({"fail", "skip"}));
  app.add_option("--threads", options.threads, "CPU threads")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.callback([&] {
    options.skip_bad = bad == "skip";
    pack(dir, file, options);
  });
  return tw::run_options(app, argc, argv, world);
}

}  // namespace

int main(int argc, char** argv) {
  return tw::run_program([&](tw::Communicator& world) { return run(world, argc, argv); });
}
