// LocalSgd: each rank takes several steps of SGD by itself; then the ranks exchange how far their
// parameters have moved. H local steps make a round:
//   a = w                                at the start, the same on all ranks
//   H times:  w -= lr (momentum and weight decay of g)         on each rank by itself
//   D = a - w;  w = a
//   SyncSgd with D in place of the gradient: residual, selection, exchange, mean, outer momentum
// The last step of an epoch, and of the run, ends a round, even a shorter one.
#pragma once

#include "sparsify/sync_sgd.h"

namespace tw {

/// The configuration of the SyncSgd that exchanges the differences: the outer optimizer.
SgdConfig outer_of(const SgdConfig& config);

class LocalSgd : public Optimizer {
 public:
  /// UserError on parts that exclude local steps.
  LocalSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
           const Settings& settings);

  /// A rank whose gradient is not finite takes no further local step in this round; the exchange
  /// reports the value on every rank. A request to stop takes effect at the exchange, too.
  void begin(const StepInput& input) override;
  void gradient_ready(const Parameter&) override {}
  /// Between two exchanges the parameters differ between ranks; after one they are bit-identical.
  StepReport finish() override;

  bool selects() const override { return outer_.selects(); }
  std::span<float> residual() override { return outer_.residual(); }
  std::span<float> momentum() override { return outer_.momentum(); }
  /// Those of the outer optimizer, and `anchor`.
  std::vector<NamedVector> common_vectors() override;
  /// Those of the outer optimizer, `inner_momentum` and `parameters`.
  std::vector<NamedVector> own_vectors() override;
  /// Those of the outer optimizer, and `round`; see steps_in_round().
  std::vector<NamedState> states() override;
  bool has_unreachable_residual() const override { return outer_.has_unreachable_residual(); }
  void adopt_mean_residual() override { outer_.adopt_mean_residual(); }

  bool same_on_all_ranks() const override { return steps_in_round() == 0; }
  /// Local steps since the last exchange.
  uint64_t steps_in_round() const { return round_.steps; }
  /// The same, from the bytes of the state `round`.
  static uint64_t steps_in_round(std::span<const std::byte> state);

 private:
  struct Round {
    uint64_t steps = 0;
    uint64_t before = 0;              // finished rounds
    uint64_t nonfinite = UINT64_MAX;  // first NaN or infinity that this rank found in the round
    float nonfinite_value = 0;
    uint32_t unused = 0;  // no padding: checkpoints hold the bytes
  };

  std::span<float> anchor() { return anchor_.as<float>(); }
  std::span<float> inner_momentum() { return inner_momentum_.as<float>(); }
  void step_alone();
  void leave_difference();
  StepReport exchange();

  Context& ctx_;
  ParameterArena& arena_;
  SgdConfig config_;
  SyncSgd outer_;
  std::vector<uint32_t> decay_bounds_;
  Buffer anchor_, inner_momentum_;
  StepInput input_;
  Round round_;
  bool stop_ = false;  // this rank received a stop signal in this round
};

}  // namespace tw
