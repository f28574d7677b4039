// Ranks that are threads and share a GPU: messages and sums stay in its memory.
#include "comm/link/link.h"
#include "comm/transports.h"
#include "engine/ops/vector.h"
#include "tests/support/device.h"
#include "tests/support/ranks/device_collectives.h"

namespace tw {
namespace {

TEST(ThreadsOnGpu, CollectivesGiveTheBitsOfTheCpu) {
  for (const int ranks : {1, 2, 3, 4, 5, 8, 16})
    run_on_threads(ranks, [](Communicator& comm) {
      Context ctx(test::device());
      expect_collectives_of_the_cpu(ctx, comm);
    });
}

TEST(ThreadsOnGpu, CollectivesRunOverEmulatedLinks) {
  run_on_threads(3, [](Communicator& comm) {
    Context ctx(test::device());
    LinkCommunicator link(ctx, comm, parse_link("1Gbit,1ms"), LinkTime::simulated);
    expect_collectives_of_the_cpu(ctx, link);
  });
}

/// The copy waits for the queued work of both sides: each rank writes the memory it sends and reads
/// the memory it receives into, just before the exchange.
TEST(ThreadsOnGpu, MessagesWaitForQueuedKernels) {
  run_on_threads(2, [](Communicator& comm) {
    Context ctx(test::device());
    const int peer = 1 - comm.rank();
    constexpr size_t n = 10000;
    const std::vector<float> ones(n, 1);
    for (int round = 0; round < 50; ++round) {
      const DeviceFloats out(ctx, ones), in(ctx, ones), kept(ctx, std::vector<float>(n));
      ops::fill(ctx, out.span(), static_cast<float>(10 * comm.rank() + round));
      ops::add(ctx, in.span(), kept.span());
      comm.exchange(ctx, peer, std::as_bytes(out.span()), peer, std::as_writable_bytes(in.span()));
      ops::fill(ctx, out.span(), -1);
      EXPECT_EQ(in.get(), std::vector<float>(n, static_cast<float>(10 * peer + round)));
      EXPECT_EQ(kept.get(), ones);
    }
  });
}

TEST(ThreadsOnGpu, GpuAndHostMemoryExchangeMessages) {
  run_on_threads(2, [](Communicator& comm) {
    Context ctx(test::device());
    const std::vector<float> values = whole_numbers(comm.rank(), 1000);
    const DeviceFloats on_device(ctx, values);
    std::vector<float> on_host(1000);
    if (comm.rank() == 0) {
      comm.send(ctx, 1, std::as_bytes(on_device.span()));
      comm.receive(ctx, 1, std::as_writable_bytes(on_device.span()));
      EXPECT_EQ(on_device.get(), whole_numbers(0, 1000));
    } else {
      comm.receive(ctx, 0, std::as_writable_bytes(std::span(on_host)));
      EXPECT_EQ(on_host, whole_numbers(0, 1000));
      comm.send(ctx, 0, std::as_bytes(std::span(on_host)));
    }
  });
}

}  // namespace
}  // namespace tw
