// Messages between the memory of GPUs over MPI.

#include "comm/collectives/vendor.h"
#include "engine/ops/vector.h"
#include "tests/support/ranks/device_collectives.h"
#include "tests/support/ranks/ranks.h"

namespace tw {
namespace {

class DeviceMemoryOverMpi : public testing::Test {
 protected:
  void SetUp() override {
    if (!started_by_mpi()) GTEST_SKIP() << "for ranks of mpirun";
    const std::string missing = what_is_missing(Device::cuda);
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

TEST_F(DeviceMemoryOverMpi, MessagesOfAnySizeArrive) {
  for (int ranks : {2, 3})
    run_ranks(ranks, [](Context&, Communicator& comm) {
      Context ctx(Device::cuda);
      const int right = (comm.rank() + 1) % comm.size();
      const int left = (comm.rank() + comm.size() - 1) % comm.size();
      // nothing, less than a block, whole blocks, several and a part
      const auto length_of = [](int rank, int round) {
        const size_t lengths[] = {0, 1, 1000, size_t{1} << 20, size_t{2} << 20, 5000001};
        return lengths[static_cast<size_t>(rank + round) % std::size(lengths)];
      };
      const DeviceFloats in(ctx, std::vector<float>(5000001));
      for (int round = 0; round < 12; ++round) {
        const size_t mine = length_of(comm.rank(), round), theirs = length_of(left, round);
        const DeviceFloats out(ctx, whole_numbers(comm.rank(), mine));
        ops::add(ctx, out.span(), out.span());  // still queued when the exchange is called
        const size_t received = comm.exchange(ctx, right, std::as_bytes(out.span()), left,
                                              std::as_writable_bytes(in.span()));
        EXPECT_EQ(received, theirs * sizeof(float));
        const HostFloats got(ctx, in.span().first(theirs));
        const auto expected = whole_numbers(left, theirs);
        size_t wrong = 0;
        for (size_t i = 0; i < theirs; ++i) wrong += got.span()[i] != 2 * expected[i];
        EXPECT_EQ(wrong, 0u) << "round " << round;
      }
    });
}

TEST_F(DeviceMemoryOverMpi, CollectivesGiveTheBitsOfTheCpu) {
  for (int ranks : kRankCounts)
    run_ranks(ranks, [](Context&, Communicator& comm) {
      Context ctx(Device::cuda);
      expect_collectives_of_the_cpu(ctx, comm);
    });
}

TEST_F(DeviceMemoryOverMpi, VendorCollectivesSumSeveralBlocks) {
  for (int ranks : {2, 3})
    run_ranks(ranks, [](Context&, Communicator& comm) {
      Context ctx(Device::cuda);
      const size_t n = 2'500'001;  // two blocks and a part
      const DeviceFloats data(ctx, whole_numbers(comm.rank(), n));
      ops::add(ctx, data.span(), data.span());  // still queued when the allreduce is called
      comm.vendor()->allreduce(ctx, data.span());
      ops::add(ctx, data.span(), data.span());
      std::vector<float> expected(n);
      for (int rank = 0; rank < comm.size(); ++rank) {
        const std::vector<float> theirs = whole_numbers(rank, n);
        for (size_t i = 0; i < n; ++i) expected[i] += 4 * theirs[i];
      }
      EXPECT_TRUE(data.get() == expected);
    });
}

}  // namespace
}  // namespace tw
