// The NCCL transport: one rank on any GPU, several where there are several GPUs.

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/transports.h"
#include "tests/support/device.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/device_collectives.h"

namespace tw {
namespace {

using namespace std::chrono_literals;
using Body = std::function<void(Context& ctx, Communicator& nccl)>;

int gpus() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

/// Runs `body` on threads over NCCL, each in a context on its own GPU.
void run_over_nccl(int ranks, const Body& body, double timeout = 30) {
  if (test::emulated()) GTEST_SKIP() << "NCCL is not emulated";
  run_on_threads(ranks, [&](Communicator& threads) {
    threads.set_timeout(timeout);
    Context host;
    std::string notice;
    const auto nccl = make_nccl_communicator(host, threads, notice);
    ASSERT_NE(nccl, nullptr) << notice;
    Context ctx(test::device(), 1, nccl->gpu());
    body(ctx, *nccl);
  });
}

class Nccl : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const std::string lacking = what_nccl_lacks();
    if (!lacking.empty()) GTEST_SKIP() << lacking;
    if (gpus() < GetParam())
      GTEST_SKIP() << GetParam() << " ranks want as many GPUs; this machine has " << gpus();
  }
};

TEST_P(Nccl, VendorCollectivesGiveTheRightSums) {
  run_over_nccl(GetParam(), [](Context& ctx, Communicator& comm) {
    Context host;
    for (Context* const place : {&host, &ctx})
      for (const size_t n : {size_t{1}, size_t{1000}, (size_t{5} << 20) + 3}) {
        SCOPED_TRACE(fmt::format("{} floats on {}", n, name(place->device())));
        const DeviceFloats data(*place, whole_numbers(comm.rank(), n));
        allreduces().find("vendor").value({})(ctx, comm, data.span(), {});
        EXPECT_EQ(wrong_sums(data.get(), comm.size()), 0u);

        const int root = comm.size() - 1;
        const DeviceFloats summed(*place, whole_numbers(comm.rank(), n));
        reduces().find("vendor").value({})(ctx, comm, root, summed.span(), {});
        const auto there = summed.get();
        EXPECT_EQ(comm.rank() == root ? wrong_sums(there, comm.size()) : 0, 0u);

        const DeviceFloats spread(*place, whole_numbers(comm.rank(), n));
        broadcasts().find("vendor").value({})(ctx, comm, root,
                                              std::as_writable_bytes(spread.span()));
        EXPECT_EQ(spread.get(), whole_numbers(root, n));
      }
  });
}

TEST_P(Nccl, MessagesOfAnySizeArriveAroundARing) {
  run_over_nccl(GetParam(), [](Context& ctx, Communicator& comm) {
    if (comm.size() == 1) return;
    const int right = (comm.rank() + 1) % comm.size();
    const int left = (comm.rank() + comm.size() - 1) % comm.size();
    // below and above the limit of messages sent with their length, and several blocks
    const auto length_of = [](int rank, int round) {
      const size_t lengths[] = {0, 1, 1024, 1025, 100000, 7000001, 3};
      return lengths[static_cast<size_t>(rank + 2 * round) % std::size(lengths)];
    };
    Context host;
    for (Context* const place : {&host, &ctx})
      for (int round = 0; round < 14; ++round) {
        const DeviceFloats out(*place, whole_numbers(comm.rank(), length_of(comm.rank(), round)));
        const DeviceFloats in(*place, std::vector<float>(7000001));
        const size_t received = comm.exchange(ctx, right, std::as_bytes(out.span()), left,
                                              std::as_writable_bytes(in.span()));
        const auto expected = whole_numbers(left, length_of(left, round));
        EXPECT_EQ(received, expected.size() * sizeof(float));
        const auto got = in.get();
        EXPECT_TRUE(std::equal(expected.begin(), expected.end(), got.begin()))
            << "round " << round << " on " << name(place->device());
      }
  });
}

TEST_P(Nccl, CollectivesGiveTheRightSums) {
  run_over_nccl(GetParam(), [](Context& ctx, Communicator& comm) {
    expect_collectives_of_the_cpu(ctx, comm);
    Context host;
    for (const auto& [name, entry] : allreduces().entries())
      for (const size_t n : kLengths) {
        std::vector<float> data = whole_numbers(comm.rank(), n), scratch(n);
        entry.value(known_link())(host, comm, data, scratch);
        EXPECT_EQ(wrong_sums(data, comm.size()), 0u) << name << ", length " << n;
      }
    GatheredBlocks blocks;
    const auto mine = whole_numbers(comm.rank(), static_cast<size_t>(comm.rank()) * 9000);
    allgather(host, comm, std::as_bytes(std::span(mine)), 1000, blocks);
    for (int rank = 0; rank < comm.size(); ++rank) {
      const auto expected = whole_numbers(rank, static_cast<size_t>(rank) * 9000);
      EXPECT_TRUE(std::ranges::equal(blocks[rank], std::as_bytes(std::span(expected))));
    }
  });
}

TEST_P(Nccl, TimeoutNamesTheMissingRank) {
  if (GetParam() == 1) GTEST_SKIP() << "one rank does not wait";
  const std::string text = test::error_text<TimeoutError>([&] {
    run_over_nccl(
        GetParam(),
        [](Context& ctx, Communicator& comm) {
          const DeviceFloats data(ctx, std::vector<float>(100000));
          barrier(ctx, comm);
          if (comm.rank() == comm.size() - 1) std::this_thread::sleep_for(1500ms);
          // vendor collectives send no length ahead, so this waits in NCCL itself
          allreduces().find("vendor").value({})(ctx, comm, data.span(), {});
        },
        1);
  });
  EXPECT_NE(text.find("has waited 1 s for the others"), std::string::npos) << text;
}

INSTANTIATE_TEST_SUITE_P(Ranks, Nccl, testing::Values(1, 2, 4));

TEST(NcclSharing, TwoRanksOnOneGpuFallBackWithANotice) {
  const std::string lacking = what_nccl_lacks();
  if (!lacking.empty()) GTEST_SKIP() << lacking;
  const int last = gpus();
  run_on_threads(last + 1, [&](Communicator& threads) {
    Context host;
    std::string notice;
    EXPECT_EQ(make_nccl_communicator(host, threads, notice), nullptr);
    EXPECT_EQ(notice.find(fmt::format("nccl: ranks 0 and {} share the GPU at ", last)), 0u)
        << notice;
    barrier(host, threads);  // the bootstrap still works
  });
}

}  // namespace
}  // namespace tw
