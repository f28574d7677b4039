// Selection in chunks: the largest of each chunk, and how the chunks share k.

#include <gtest/gtest.h>

#include <map>

#include "tests/support/selection.h"

namespace tw {
namespace {

Settings of_size(size_t size) {
  Settings settings = default_settings();
  settings.set("chunks.size", std::to_string(size));
  return settings;
}

std::vector<uint32_t> chosen(const Settings& settings, const std::vector<float>& u, size_t k,
                             uint64_t step = 0, int threads = 1) {
  Context ctx(Device::cpu, threads);
  const auto selector = selectors().find("chunks").value(ctx, settings, {});
  std::vector<float> e(u.size());
  SparseVector out;
  selector->select(ctx, {.g = u, .e = e, .k = k, .step = step}, out);
  return {out.index_span().begin(), out.index_span().end()};
}

TEST(Chunks, SendTheLargestOfEachChunk) {
  for (const auto& [name, u] : vectors())
    for (const size_t each : {1, 16, 64})
      for (const size_t size : {256, 4096}) {
        const size_t chunks = u.size() / size, d = chunks * size;
        const std::vector<float> whole(u.begin(), u.begin() + static_cast<ptrdiff_t>(d));
        std::vector<uint32_t> expected;
        for (size_t begin = 0; begin < d; begin += size) {
          const std::vector<float> chunk(whole.begin() + static_cast<ptrdiff_t>(begin),
                                         whole.begin() + static_cast<ptrdiff_t>(begin + size));
          for (const uint32_t i : sorted_top(chunk, each))
            expected.push_back(static_cast<uint32_t>(begin) + i);
        }
        for (const int threads : {1, 3})
          EXPECT_EQ(chosen(of_size(size), whole, each * chunks, 5, threads), expected)
              << name << ", " << each << " of " << size;
      }
}

TEST(Chunks, ShareWhatDoesNotDivideOverTheSteps) {
  // 10 chunks of 16 elements and one of 8, which share 7 entries in each step
  const std::vector<float> u(168, 1.0f);
  std::map<size_t, int> sent;
  constexpr int steps = 1200;
  for (uint64_t step = 0; step < steps; ++step) {
    const auto indices = chosen(of_size(16), u, 7, step);
    EXPECT_EQ(indices.size(), 7u);
    for (const uint32_t i : indices) ++sent[i / 16];
  }
  for (size_t chunk = 0; chunk < 11; ++chunk)
    EXPECT_NEAR(sent[chunk], steps * 7.0 * (chunk < 10 ? 16 : 8) / 168, 3) << chunk;
}

TEST(Chunks, WithoutEnoughNonZerosSendFewer) {
  std::vector<float> u(64);
  u[1] = 3, u[40] = 1, u[41] = -2, u[42] = 5;
  EXPECT_EQ(chosen(of_size(16), u, 8), (std::vector<uint32_t>{1, 41, 42}));
}

}  // namespace
}  // namespace tw
