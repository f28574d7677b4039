// A rank fails or hangs while the others exchange: with every sparsifier the others end in time.

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>

#include "comm/transports.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

using namespace std::chrono_literals;

constexpr int kRanks = 4;
constexpr size_t kLength = 1000;

/// Runs two steps on all ranks, then one in which rank `missing` runs `instead`.
void run_without(const Variant& variant, int missing, double timeout,
                 const std::function<void()>& instead) {
  run_on_threads(kRanks, [&](Communicator& comm) {
    Context ctx;
    SgdRig rig(ctx, comm, kLength, {.sparsifier = variant.sparsifier}, variant.settings);
    for (uint64_t step = 0; step < 3; ++step) {
      if (step == 2) {
        comm.set_timeout(timeout);
        if (comm.rank() == missing) return instead();
      }
      rig.step(rounding_kind(), {.step = step, .density = 0.01});
    }
  });
}

TEST(MissingRank, AFailureEndsAllRanks) {
  for (const Variant& variant : variants())
    for (int missing = 0; missing < kRanks; ++missing) {
      const testing::ScopedTrace trace(__FILE__, __LINE__,
                                       fmt::format("{}, rank {}", variant.name, missing));
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(test::error_text<Fault>([&] {
                  run_without(variant, missing, 60, [] { throw Fault("[test] out of memory"); });
                }),
                "[test] out of memory");
      EXPECT_LT(std::chrono::steady_clock::now() - start, 20s);
    }
}

TEST(MissingRank, AHangEndsAllRanksAndNamesTheExchange) {
  for (const auto& [name, entry] : sparsifiers().entries()) {
    const testing::ScopedTrace trace(__FILE__, __LINE__, name);
    // tests of comm check the rest of the line; on a busy machine several ranks may be late
    const std::string text = test::error_text<TimeoutError>([&] {
      run_without({.sparsifier = name}, 0, 0.2, [] { std::this_thread::sleep_for(500ms); });
    });
    const std::string& exchange = entry.value.exchange;
    EXPECT_TRUE(text.starts_with("[" + exchange) || text.starts_with("[shared")) << text;
    int waiting = -1, missing = -1, read = 0;
    const std::string line = text.substr(std::min(text.find(']'), text.size()));
    std::sscanf(line.c_str(), "] rank %d has waited 0.2 s for rank %d%n", &waiting, &missing,
                &read);
    EXPECT_EQ(read, std::ssize(line)) << text;
    EXPECT_TRUE(waiting >= 0 && waiting < 4 && missing >= 0 && missing < 4) << text;
  }
}

}  // namespace
}  // namespace tw
