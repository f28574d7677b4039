// `bench step`: memory of a training step.
#include <nlohmann/json.hpp>

#include "tests/support/program.h"

namespace tw::test {
namespace {

/// bf16, batch 32 at 224 x 224, on a small machine.
TEST(BenchStep, ResNet50FitsInFourGibibytes) {
#ifdef TW_SANITIZED
  GTEST_SKIP() << "a sanitizer's own memory is part of what is measured";
#endif
  for (const char* recompute : {"", " --recompute"}) {
    const Ended ended = run_well(
        fmt::format("{}/bench step --model resnet50 --image-size 224 --classes 1000 --batch-size "
                    "32 --precision bf16 --threads-per-rank 2 --warmup 0 --steps 2{}",
                    TW_BIN, recompute));
    const auto peak = nlohmann::json::parse(ended.output)["peak_rss_mib"].get<double>();
    printf("bench step%s: %.0f MiB\n", recompute, peak);
    EXPECT_LT(peak, 4096);
    EXPECT_GT(peak, 3 * 4 * 25.557032) << "values, gradients and momentum alone take more";
  }
}

}  // namespace
}  // namespace tw::test
