// SyncSgd: synchronous data-parallel SGD on one flat vector, made of a selector, an exchange and
// momentum.
//   momentum after:   u = g + e -> select -> exchange -> mean -> weight decay -> momentum -> update
//   momentum before:  q = m q + g -> u = q + e -> select -> exchange -> masking of q -> mean
//                     -> weight decay with a momentum of its own -> update
// With residual decay, e is first multiplied by a constant.
//
// EF21 (Richtárik, Sokolov and Fatkhullin 2021, arXiv 2106.05203) in place of error feedback: rank
// i has an estimate h_i of its gradient and sends what it lacks most, and all have the sum of the
// estimates, H.
//   u = g - h_i -> select -> exchange -> h_i += sent, H += sum -> mean of H -> as above
// `residual` holds -h_i, so that u = g + residual; at the start all are 0.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "engine/core/stopwatch.h"
#include "engine/ops/vector.h"
#include "sparsify/comm_thread.h"
#include "sparsify/momentum_correction.h"
#include "sparsify/optimizer.h"
#include "sparsify/sgd_plan.h"

namespace tw {

class SyncSgd : public Optimizer {
 public:
  /// Collective.
  SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
          const Settings& settings);

  // The parameters stay bit-identical on all ranks. With `overlap` the exchange of a bucket starts
  // when its last gradient is ready; without, all exchanges run in finish. Both give the same bits.
  void begin(const StepInput& input) override;
  void gradient_ready(const Parameter& parameter) override;
  StepReport finish() override;

  bool selects() const override { return selector_ != nullptr; }
  /// A sum of gradients, or of velocities with momentum before.
  std::span<float> residual() override { return residual_.as<float>(); }
  std::span<float> momentum() override { return momentum_.as<float>(); }
  /// This rank's momentum before the selection; empty if there is none.
  std::span<float> local_momentum() { return local_momentum_.as<float>(); }
  /// EF21: the sum of the ranks' estimates; empty without it.
  std::span<float> estimates() { return estimates_.as<float>(); }
  /// `momentum`, and `estimates` if there are any.
  std::vector<NamedVector> common_vectors() override;
  /// `residual`, and `local_momentum` if there is any.
  std::vector<NamedVector> own_vectors() override;
  /// Those of the exchanges, one for each bucket, and of the selector: `exchange.0`,
  /// `selector.NAME`.
  std::vector<NamedState> states() override;
  bool has_unreachable_residual() const override;
  void adopt_mean_residual() override;

 private:
  void exchange_bucket(Context& ctx, size_t number);
  ExchangeStep exchange_step(size_t number);
  void select(Context& ctx, const Bucket& bucket, Control& control);
  void account(Context& ctx, const Bucket& bucket, const ExchangeStep& step);
  void add_to_estimates(Context& ctx, const Bucket& bucket);
  void update_at_root(Context& ctx, const Bucket& bucket, Stopwatch& clock);
  void barrier_if_measuring(Context& ctx, Stopwatch& clock);
  void pack(Context& ctx, const Bucket& bucket, std::span<float> packed);
  void unpack(Context& ctx, const Bucket& bucket, std::span<float> packed);
  void copy_segments(Context& ctx, const Bucket& bucket, std::span<float> packed, bool pack);
  void settle();
  /// The segments in which `momentum` is not read: momentum before the selection, no weight decay.
  std::vector<Segment> segments_without_momentum() const;
  void update(Context& ctx, const Segment& of);
  [[noreturn]] void report_nonfinite(const Control& control, const Bucket& bucket) const;

  Context& ctx_;
  Communicator& comm_;
  ParameterArena& arena_;
  SgdConfig config_;
  SgdPlan plan_;
  const ExchangeEntry& exchange_;
  std::vector<uint32_t> decay_bounds_, corrected_bounds_;    // of all parameters
  std::vector<uint32_t> decay_of_part_, corrected_of_part_;  // of the part being updated
  MomentumCorrection correction_;                            // only with momentum before
  std::unique_ptr<Selector> selector_;                       // null for dense
  Buffer residual_, momentum_, local_momentum_;
  Buffer estimates_, gradient_;      // EF21's sum and the gradients of the step
  std::vector<Buffer> packed_;       // by bucket; empty for those that are not packed
  std::vector<size_t> waiting_for_;  // by bucket: tensors whose gradient backward has not finished
  SparseVector selected_;
  // of the slices of a bucket; kept so that a step allocates nothing
  std::vector<SelectStep> slices_;
  std::vector<Moments> norm_blocks_;  // of clip_norm
  std::vector<MomentumSlice> corrected_;
  std::vector<SelectInfo> infos_;
  ops::Transfers copies_;

  StepInput input_;
  StepReport report_;
  uint64_t bytes_before_ = 0;
  bool settles_ = false;  // the next update applies what is owed of packed segments
  size_t ready_ = 0;      // leading buckets whose gradients are all ready
  std::unique_ptr<Context> thread_ctx_;
  std::unique_ptr<CommThread> thread_;  // last member: its jobs use the others
};

}  // namespace tw
