// LocalSgd of one rank over a small arena, with gradients that depend on the parameters.
#pragma once

#include "comm/collectives/collectives.h"
#include "sparsify/local_sgd.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {

class LocalRig {
 public:
  static constexpr size_t kLength = 1000;

  /// The parameters and their first values are those of SgdRig.
  LocalRig(Context& ctx, Communicator& comm, const SgdConfig& config,
           const Settings& settings = default_settings())
      : start_(ctx, comm, kLength, {.momentum = 0}), comm_(comm) {
    sgd = std::make_unique<LocalSgd>(ctx, comm, arena, config, settings);
  }

  /// The gradient of rank `rank` at element i: that of a parabola whose lowest point depends on
  /// rank and step.
  static float gradient(int rank, uint64_t step, size_t i, float w) {
    const float lowest = SgdRig::gradient(exact_kinds()[0], rank, step, i);
    return (0.25f + 0.125f * static_cast<float>(i % 5)) * (w - lowest);
  }
  StepReport step(const StepInput& input) {
    for (size_t i = 0; i < arena.size(); ++i)
      arena.gradients()[i] = gradient(comm_.rank(), input.step, i, arena.values()[i]);
    return sgd->step(input);
  }

 private:
  SgdRig start_;

 public:
  ParameterArena& arena = start_.arena;
  std::unique_ptr<LocalSgd> sgd;

 private:
  Communicator& comm_;
};

/// Copies parameters and state of one optimizer to another.
inline void copy_state(const ParameterArena& from_arena, Optimizer& from,
                       const ParameterArena& to_arena, Optimizer& to) {
  std::ranges::copy(from_arena.values(), to_arena.values().begin());
  const auto copy_all = [](std::vector<NamedVector> source, std::vector<NamedVector> target) {
    for (size_t i = 0; i < source.size(); ++i)
      std::ranges::copy(source[i].values.span(), target[i].values.span().begin());
  };
  copy_all(from.common_vectors(), to.common_vectors());
  copy_all(from.own_vectors(), to.own_vectors());
  const auto source = from.states(), target = to.states();
  for (size_t i = 0; i < source.size(); ++i)
    std::ranges::copy(source[i].bytes, target[i].bytes.begin());
}

/// Whether x has the same bits on all ranks.
inline bool same_on_all(Context& ctx, Communicator& comm, std::span<const float> x) {
  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(x), x.size_bytes(), blocks);
  for (int rank = 0; rank < comm.size(); ++rank)
    if (!std::ranges::equal(blocks[rank], std::as_bytes(x))) return false;
  return true;
}

}  // namespace tw
