// Ranks that are threads of one process upload the entries that they add once, and all get the bits
// of a sum on the CPU, whatever order the GPU runs their streams in.
#include <gtest/gtest.h>

#include "comm/collectives/collectives.h"
#include "comm/communicator_decorator.h"
#include "comm/transports.h"
#include "engine/core/copy.h"
#include "sparsify/kernels/shared_sum.h"
#include "sparsify/sync_sgd.h"
#include "tests/support/device.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

constexpr int kRanks = 4;

/// The entries of a round, of several parts, which differ in number from round to round.
struct Entries {
  explicit Entries(size_t round, size_t d) {
    for (size_t part = 0; part < kRanks; ++part) {
      SparseVector& one = parts.emplace_back();
      one.reserve(d);
      const size_t step = 1 + (round * 5 + part) % 7;
      for (size_t i = part; i < d; i += step)
        one.push(static_cast<uint32_t>(i), 0.1f * static_cast<float>(round + i * part));
      views.push_back(one.view());
      bytes += one.count * (sizeof(uint32_t) + sizeof(float));
    }
  }
  std::vector<SparseVector> parts;
  std::vector<SparseView> views;
  size_t bytes = 0;
};

TEST(SharedSum, HasTheBitsOfTheCpuAndUploadsOnce) {
  constexpr size_t kRounds = 40, d = 700;
  Context cpu;
  Context first(test::device());
  const std::shared_ptr<SharedSum> shared = SharedSum::create(first, kRanks);
  size_t bytes = 0;
  std::vector<std::vector<float>> expected(kRounds, std::vector<float>(d));
  for (size_t round = 0; round < kRounds; ++round) {
    const Entries entries(round, d);
    sparse_sum(cpu, entries.views, expected[round]);
    bytes += entries.bytes;
  }
  run_on_threads(kRanks, [&](Communicator& comm) {
    Context ctx(test::device());
    // nobody waits for the device before the end
    const Buffer sums(ctx.device(), kRounds * d * sizeof(float));
    for (size_t round = 0; round < kRounds; ++round) {
      const Entries entries(round, d);
      shared->run(ctx, comm.rank(), entries.views, sums.as<float>().subspan(round * d, d));
      barrier(comm);
    }
    std::vector<float> found(d);
    for (size_t round = 0; round < kRounds; ++round) {
      copy_to_host(ctx, sums.as<float>().subspan(round * d, d), found);
      EXPECT_EQ(found, expected[round]) << "round " << round << ", rank " << comm.rank();
    }
  });
  EXPECT_EQ(shared->bytes_uploaded(), bytes);
}

TEST(SharedSum, TellsTheOthersThatAnUploadHasFailed) {
  Context ctx(test::device());
  const std::shared_ptr<SharedSum> shared = SharedSum::create(ctx, 2);
  const Buffer sum(ctx.device(), 16);
  // more than any memory; nothing reads the entries
  const uint32_t index = 0;
  const float value = 0;
  const SparseView huge{{&index, size_t{1} << 44}, {&value, size_t{1} << 44}};
  EXPECT_THROW(shared->run(ctx, 0, {&huge, 1}, sum.as<float>()), Fault);
  EXPECT_EQ(test::error_text<Fault>([&] {
              shared->run(ctx, 1, {&huge, 1}, sum.as<float>());
            }),
            "[sparse_sum] another rank could not upload the entries");
  EXPECT_EQ(shared->bytes_uploaded(), 0u);
}

TEST(SharedSum, RefusesACallThatOvertakesAnother) {
  Context ctx(test::device());
  const std::shared_ptr<SharedSum> shared = SharedSum::create(ctx, 2);
  const Buffer sum(ctx.device(), 16);
  const uint32_t index = 1;
  const float value = 2;
  const SparseView one{{&index, 1}, {&value, 1}};
  shared->run(ctx, 0, {&one, 1}, sum.as<float>());
  EXPECT_THROW(shared->run(ctx, 0, {&one, 1}, sum.as<float>()), std::logic_error);
}

/// Remembers what the ranks share.
class Watched : public CommunicatorDecorator {
 public:
  explicit Watched(Communicator& inner) : CommunicatorDecorator(inner) {}
  std::shared_ptr<void> share(const std::function<std::shared_ptr<void>()>& make) override {
    shared.push_back(inner_.share(make));
    return shared.back();
  }
  int sharing_ranks() const override { return inner_.sharing_ranks(); }

  std::vector<std::shared_ptr<void>> shared;

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    return inner_.exchange(ctx, to, out, from, in);
  }
};

/// Of sparsifiers with an exchange of their own each, and k entries that all ranks add.
class SharedSumOfExchange : public testing::TestWithParam<std::pair<const char*, int>> {};

TEST_P(SharedSumOfExchange, UploadsOnceAProcess) {
  const auto [sparsifier, parts] = GetParam();
  run_on_threads(kRanks, [&, sparsifier = sparsifier, parts = parts](Communicator& inner) {
    constexpr size_t d = 1000, k = 10, kSteps = 2;
    Watched comm(inner);
    Context ctx(test::device());
    ParameterArena arena;
    arena.add({.name = "bias", .shape = {d}});
    arena.allocate(ctx, 1);
    SyncSgd sgd(ctx, comm, arena, {.sparsifier = sparsifier}, default_settings());
    std::vector<float> g(d);
    for (uint64_t step = 0; step < kSteps; ++step) {
      for (size_t i = 0; i < d; ++i)
        g[i] = SgdRig::gradient(exact_kinds().front(), comm.rank(), step, i);
      copy_to_device(ctx, g, arena.gradients());
      sgd.step({.step = step, .lr = 0.5, .density = static_cast<double>(k) / d});
    }
    ASSERT_EQ(comm.shared.size(), 1u);
    EXPECT_EQ(static_cast<SharedSum*>(comm.shared[0].get())->bytes_uploaded(),
              kSteps * static_cast<size_t>(parts) * k * (sizeof(uint32_t) + sizeof(float)));
  });
}

INSTANTIATE_TEST_SUITE_P(Exchanges, SharedSumOfExchange,
                         testing::Values(std::pair{"topk", kRanks}, std::pair{"exact", 1},
                                         std::pair{"gtopk", 1}),
                         [](const auto& p) { return std::string(p.param.first); });

}  // namespace
}  // namespace tw
