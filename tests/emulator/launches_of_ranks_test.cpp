// Launches of a step of ranks that are threads of one process.
#include <gtest/gtest.h>

#include <cmath>

#include "comm/collectives/collectives.h"
#include "comm/transports.h"
#include "engine/core/copy.h"
#include "sparsify/sync_sgd.h"
#include "tests/emulator/stream.h"

namespace tw {
namespace {

/// The tensors of a CIFAR ResNet of depth 20 with a quarter of its channels.
void declare_resnet20(ParameterArena& arena) {
  int64_t in = 3;
  for (const int64_t out : {4, 4, 4, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 16, 16, 16, 16, 16, 16}) {
    const std::string name = fmt::format("conv{}", arena.parameters().size());
    arena.add({.name = name + ".weight", .shape = {out, 3, 3, in}});
    arena.add({.name = name + ".scale", .shape = {out}, .decay = false});
    arena.add({.name = name + ".shift", .shape = {out}, .decay = false});
    in = out;
  }
  arena.add({.name = "fc.weight", .shape = {10, in}});
  arena.add({.name = "fc.bias", .shape = {10}, .decay = false});
}

TEST(DgcOf16Ranks, TakesFewLaunches) {
  constexpr int kRanks = 16;
  uint64_t before = 0, after = 0;
  run_on_threads(kRanks, [&](Communicator& comm) {
    Context cpu, ctx(Device::cuda);
    ParameterArena arena;
    declare_resnet20(arena);
    arena.allocate(ctx, 1);
    // two buckets, as of the whole network
    SyncSgd sgd(ctx, comm, arena,
                {.sparsifier = "dgc", .momentum = 0.9, .weight_decay = 1e-4, .bucket_bytes = 65536},
                default_settings());
    std::vector<float> g(arena.size());
    for (uint64_t step = 0; step < 2; ++step) {
      for (size_t i = 0; i < g.size(); ++i)
        g[i] = std::sin(static_cast<float>(i * (step + 3) + static_cast<size_t>(comm.rank())));
      copy_to_device(ctx, g, arena.gradients());
      ctx.synchronize();
      barrier(comm);
      if (comm.rank() == 0) before = emulator::launches();
      barrier(comm);
      const StepReport report = sgd.step({.step = step, .lr = 0.1, .density = 0.01});
      EXPECT_GT(report.nnz, 0u);
      barrier(comm);
      if (comm.rank() == 0) after = emulator::launches();
    }
  });
  RecordProperty("launches", static_cast<int>(after - before));
  EXPECT_LT(after - before, 500u);
}

}  // namespace
}  // namespace tw
