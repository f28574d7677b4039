// Local SGD on a GPU gives the parameters of the CPU, bit by bit where no sum rounds, and continues
// from a saved state.
#include <gtest/gtest.h>

#include "engine/core/copy.h"
#include "sparsify/local_sgd.h"
#include "tests/support/device.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

constexpr size_t kElements = 1000;

/// LocalSgd on a device, with integer gradients.
class LocalDeviceRig {
 public:
  LocalDeviceRig(Context& ctx, Communicator& comm, const char* sparsifier)
      : ctx_(ctx), comm_(comm) {
    arena.add({.name = "a.weight", .shape = {int64_t{kElements}, 1}});
    arena.allocate(ctx, 1);
    // powers of two: nothing rounds
    sgd = make_optimizer(ctx, comm, arena,
                         {.sparsifier = sparsifier,
                          .momentum = 0.5,
                          .weight_decay = 0,
                          .local_steps = 4,
                          .outer_lr = 0.5,
                          .outer_momentum = 0.5},
                         default_settings());
  }

  void step(uint64_t step, float first = 0) {
    std::vector<float> g(kElements);
    for (size_t i = 0; i < g.size(); ++i)
      g[i] = SgdRig::gradient(exact_kinds()[0], comm_.rank(), step, i);
    g[0] += first;
    copy_to_device(ctx_, g, arena.gradients());
    sgd->step({.step = step, .lr = 0.5, .density = 0.05, .last = step == 9});
  }
  std::vector<float> values() {
    std::vector<float> host(kElements);
    copy_to_host(ctx_, arena.values(), host);
    return host;
  }

  ParameterArena arena;
  std::unique_ptr<Optimizer> sgd;

 private:
  Context& ctx_;
  Communicator& comm_;
};

void write_all(std::vector<NamedVector> source, std::vector<NamedVector> target) {
  for (size_t i = 0; i < source.size(); ++i) {
    std::ranges::copy(source[i].values.span(), target[i].values.span().begin());
    target[i].values.write();
  }
}

TEST(LocalSgdOnGpu, GivesTheParametersOfTheCpu) {
  for (const int ranks : {1, 2, 4})
    run_on_threads(ranks, [](Communicator& comm) {
      Context cpu, gpu(test::device());
      for (const char* sparsifier : {"dense", "topk"}) {
        LocalDeviceRig expected(cpu, comm, sparsifier), found(gpu, comm, sparsifier);
        for (uint64_t step = 0; step < 10; ++step) {
          expected.step(step);
          found.step(step);
          EXPECT_TRUE(same_bits(found.values(), expected.values())) << sparsifier << " " << step;
        }
      }
    });
}

TEST(LocalSgdOnGpu, ContinuesWithinARound) {
  run_on_threads(2, [](Communicator& comm) {
    Context gpu(test::device());
    LocalDeviceRig whole(gpu, comm, "topk"), resumed(gpu, comm, "topk");
    for (uint64_t step = 0; step < 6; ++step) whole.step(step);
    write_all(whole.sgd->common_vectors(), resumed.sgd->common_vectors());
    write_all(whole.sgd->own_vectors(), resumed.sgd->own_vectors());
    const auto from = whole.sgd->states(), to = resumed.sgd->states();
    for (size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i].bytes, to[i].bytes.begin());
    for (uint64_t step = 6; step < 10; ++step) {
      whole.step(step);
      resumed.step(step);
    }
    EXPECT_TRUE(same_bits(whole.values(), resumed.values()));
  });
}

TEST(LocalSgdOnGpu, ReportsANaNAtTheExchange) {
  run_on_threads(2, [](Communicator& comm) {
    Context gpu(test::device());
    LocalDeviceRig rig(gpu, comm, "topk");
    rig.step(0);
    rig.step(1, comm.rank() == 1 ? INFINITY : 0.0f);
    rig.step(2);
    EXPECT_EQ(test::error_text<CollectiveFault>([&] { rig.step(3); }),
              "[train] rank 1: gradient of a.weight is inf at element 0 (steps 0 to 3); a lower "
              "learning rate may help");
  });
}

}  // namespace
}  // namespace tw
