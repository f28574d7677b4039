// SyncSgd: synchronous data-parallel SGD; selector x exchange x momentum on one flat vector.
//   momentum after:  u = g + e -> select -> exchange -> mean -> weight decay -> momentum -> update
//   before (momentum correction):  q = m q + g -> u = q + e -> select -> exchange -> masking of q
//                                  -> mean -> weight decay, with momentum of its own -> update
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/core/stopwatch.h"
#include "engine/plan/arena.h"
#include "sparsify/buckets.h"
#include "sparsify/comm_thread.h"
#include "sparsify/exchange.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

/// What changes from step to step.
struct StepInput {
  uint64_t step = 0;
  double lr = 0.1;
  double density = 1.0;
  bool stop = false;  ///< this rank received a stop signal
};

/// What one step cost and did on this rank.
struct StepReport {
  double sec_select = 0, sec_exchange = 0, sec_update = 0;
  double sec_wait = 0;  ///< of sec_exchange, until all ranks had come; only with a meeting
  uint64_t bytes_sent = 0;
  size_t nnz = 0;     ///< entries this rank sent; d for dense
  size_t k = 0;       ///< entries asked for; d for dense
  bool stop = false;  ///< some rank received a stop signal: all stop after this step
};

class SyncSgd {
 public:
  SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
          const Settings& settings);

  /// Takes the gradients of the arena to the next parameters; all ranks end bit-identical.
  /// Throws Fault, on every rank in the same step, when a gradient is not finite.
  StepReport step(const StepInput& input);

  // The same in three parts, around backward: with `overlap` the exchange of a bucket runs from
  // when its last gradient is final; without, all run in finish. The bits are the same.
  void begin(const StepInput& input);
  void gradient_ready(const Parameter& parameter);
  StepReport finish();

  /// What stayed behind on this rank; accumulated velocity when momentum comes before.
  std::span<float> residual() { return residual_.as<float>(); }
  /// Momentum after the mean, the same on all ranks.
  std::span<float> momentum() { return momentum_.as<float>(); }
  /// Momentum before the selection, this rank's own; empty when there is none.
  std::span<float> local_momentum() { return local_momentum_.as<float>(); }
  // The same as the host sees them; see HostFloats.
  HostFloats host_residual() { return {ctx_, residual()}; }
  HostFloats host_momentum() { return {ctx_, momentum()}; }
  HostFloats host_local_momentum() { return {ctx_, local_momentum()}; }
  /// What exchanges remember on this rank, bucket by bucket.
  std::vector<std::span<std::byte>> exchange_state();

  /// Bytes of momentum, residual and exchange buffers (for the plan).
  static size_t memory_bytes(const Sparsifier& algorithm, const SgdConfig& config, size_t d);
  /// Bytes that all ranks together send in one step, if every rank selects what it is asked for.
  static uint64_t wire_bytes(const Sparsifier& algorithm, const SgdConfig& config,
                             const Settings& settings, const ParameterArena& arena, int ranks,
                             double density);

 private:
  // one exchange a bucket: it may remember things
  struct BucketState {
    Bucket bucket;
    std::unique_ptr<Exchange> exchange;
    size_t waiting_for = 0;  // tensors whose gradient backward has not finished
  };

  void run(Context& ctx, BucketState& state);
  void meet_ranks(Context& ctx, Stopwatch& clock);
  void select(Context& ctx, const BucketState& state, Control& control);
  void sum_dense_segments(Context& ctx, const Bucket& bucket);
  void unpack_dense_segments(Context& ctx, const Bucket& bucket);
  void copy_dense_segments(Context& ctx, const Bucket& bucket,
                           const std::function<void(std::span<float>, std::span<float>)>& copy);
  void update(Context& ctx, const Segment& of);
  [[noreturn]] void report_nonfinite(const Control& control, size_t offset) const;

  Context& ctx_;
  Communicator& comm_;
  ParameterArena& arena_;
  SgdConfig config_;
  Sparsifier sparsifier_;
  std::vector<UpdateRange> updates_;
  std::vector<uint32_t> decay_bounds_;  // of all parameters
  bool masking_ = false;                // both of momentum before the selection
  double clip_ = 0;
  std::unique_ptr<Selector> selector_;  // null for dense
  std::vector<BucketState> buckets_;
  std::unique_ptr<Exchange> small_exchange_;  // of dense segments beside sparse ones
  Buffer residual_, momentum_, local_momentum_, small_;
  SparseVector selected_;

  StepInput input_;
  StepReport report_;
  uint64_t bytes_before_ = 0;
  size_t ready_ = 0;  // parts, in order, whose gradients are final
  std::unique_ptr<Context> thread_ctx_;
  std::unique_ptr<CommThread> thread_;  // last: it ends before what it uses
};

}  // namespace tw
