#include "sparsify/sync_sgd.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/collectives/collectives.h"
#include "engine/core/copy.h"
#include "engine/ops/nonfinite.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "sparsify/kernels/sparse_ops.h"

namespace tw {

namespace {

/// Seconds since the last lap, once the device has finished.
double lap(const Context& ctx, Stopwatch& clock) {
  ctx.synchronize();
  return clock.lap();
}

Tensor flat(Context& ctx, std::span<float> x) {
  return {x.data(), {static_cast<int64_t>(x.size())}, DType::f32, ctx.device()};
}

std::span<float> slice(std::span<float> x, const Segment& segment) {
  return x.empty() ? x : x.subspan(segment.offset, segment.length);
}

/// Records the first NaN or infinity of x, its index plus `offset`, unless one is recorded.
void check_finite(Context& ctx, std::span<const float> x, size_t offset, Control& control) {
  const size_t bad = ops::first_nonfinite(ctx, x);
  if (bad == x.size() || control.nonfinite != SIZE_MAX) return;
  control.nonfinite = offset + bad;
  control.nonfinite_value = value_at(ctx, &x[bad]);
}

}  // namespace

SyncSgd::SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
                 const Settings& settings)
    : ctx_(ctx),
      comm_(comm),
      arena_(arena),
      config_(config),
      sparsifier_(resolve_sparsifier(config, settings)),
      updates_at_root_(exchanges().find(sparsifier_.exchange).value.updates_at_root),
      one_rank_selects_(exchanges().find(sparsifier_.exchange).value.one_rank_selects),
      decay_bounds_(bounds_of_decay(arena)),
      corrected_bounds_(bounds_of_correction(arena, sparsifier_)) {
  decay_of_part_.reserve(decay_bounds_.size() + 1);
  corrected_of_part_.reserve(corrected_bounds_.size() + 1);
  check(arena.size() < UINT32_MAX,
        "[train] the model has {} parameters; indices have 32 bits, so it may have at most {}",
        arena.size(), UINT32_MAX - 1);
  const size_t bytes = arena.size() * sizeof(float);
  if (config.momentum != 0) momentum_ = Buffer(ctx.device(), bytes);
  if (sparsifier_.momentum_before) {
    correction_ = momentum_correction(settings, config.momentum, comm.size());
    if (config.momentum != 0) local_momentum_ = Buffer(ctx.device(), bytes);
  }

  size_t small = 0, slices = 0;
  const ExchangeEntry& exchange = exchanges().find(sparsifier_.exchange).value;
  const std::vector<HostId> machines = gather(comm, comm.machine());
  for (Bucket& bucket : plan_buckets(arena, sparsifier_, config.bucket_bytes)) {
    small = std::max(small, bucket.dense_length());
    const size_t first = std::exchange(slices, slices + bucket.sparse.size());
    ExchangePlan plan = plan_exchange(arena, bucket, config.seed);
    plan.machines = machines;
    buckets_.push_back({std::move(bucket), exchange(settings, plan), first});
  }
  if (!sparsifier_.selector.empty()) {
    const SelectorRank rank{.rank = comm.rank(), .seed = config.seed, .slices = slices};
    selector_ = selectors().find(sparsifier_.selector).value.make(ctx, settings, rank);
  }
  if (keeps_residual(sparsifier_)) residual_ = Buffer(ctx.device(), bytes);
  if (small > 0) {
    small_exchange_ = dense_exchange().value(settings);
    small_ = Buffer(ctx.device(), (small + 1) * sizeof(float));
  }
  if (config.overlap) {
    thread_ctx_ = std::make_unique<Context>(ctx.device(), ctx.threads(), ctx.gpu());
    thread_ = std::make_unique<CommThread>(
        [this] { thread_ctx_->bind_thread(); },
        [this](size_t i) { exchange_bucket(*thread_ctx_, buckets_[i]); });
  }
}

void SyncSgd::begin(const StepInput& input) {
  input_ = input;
  report_ = {};
  bytes_before_ = comm_.bytes_sent();
  ready_ = 0;
  if (config_.residual_decay != 1)
    ops::scale(ctx_, residual(), static_cast<float>(config_.residual_decay));
  for (BucketState& state : buckets_) state.waiting_for = state.bucket.parameters;
  if (thread_) thread_->start();
}

void SyncSgd::gradient_ready(const Parameter& parameter) {
  if (!thread_) return;
  const auto state = std::ranges::lower_bound(buckets_, parameter.offset, std::greater<>(),
                                              [](const BucketState& p) { return p.bucket.offset; });
  --state->waiting_for;
  const size_t before = ready_;
  while (ready_ < buckets_.size() && buckets_[ready_].waiting_for == 0) ++ready_;
  if (ready_ == before) return;
  ctx_.synchronize();  // the thread has a stream of its own
  thread_->release(ready_);
}

StepReport SyncSgd::finish() {
  Stopwatch clock;
  if (thread_) {
    ctx_.synchronize();
    thread_->release(buckets_.size());
    thread_->wait();
    // the time that remained after backward; the rest ran during it
    report_.sec_select = 0;
    report_.sec_exchange = lap(ctx_, clock);
  } else {
    if (correction_.clips_whole) clip_norm(ctx_, correction_.clip, arena_.gradients());
    for (BucketState& state : buckets_) exchange_bucket(ctx_, state);
  }
  report_.bytes_sent = comm_.bytes_sent() - bytes_before_;
  lap(ctx_, clock);
  if (settles_) settle();
  if (!updates_at_root_) update(ctx_, {0, arena_.size()});
  report_.sec_update += lap(ctx_, clock);
  return report_;
}

void SyncSgd::exchange_bucket(Context& ctx, BucketState& state) {
  const OperationScope operation(comm_, sparsifier_.exchange.c_str());
  const Bucket& bucket = state.bucket;
  const ExchangeStep step = exchange_step(bucket);
  Stopwatch clock;
  Control control{.stop = input_.stop};
  selected_.count = 0;

  barrier_if_measuring(ctx, clock);
  if (!bucket.dense.empty()) sum_dense_segments(ctx, bucket);
  const bool selects = state.exchange->prepare(ctx, comm_, step, control);
  report_.sec_exchange += lap(ctx, clock);

  if (!selector_) {
    if (!step.residual.empty()) ops::add(ctx, step.residual, step.gradient);  // u = g + e
    check_finite(ctx, step.gradient, 0, control);
  } else if (selects) {
    select(ctx, state, control);
  }
  report_.sec_select += lap(ctx, clock);

  barrier_if_measuring(ctx, clock);
  sum_over_ranks(ctx, state, step, control);
  unpack_dense_segments(ctx, bucket);
  report_.sec_exchange += lap(ctx, clock);
  if (updates_at_root_) update_at_root(ctx, state, clock);
}

ExchangeStep SyncSgd::exchange_step(const Bucket& bucket) {
  const Segment whole{bucket.offset, bucket.length};
  return {
      .gradient = slice(arena_.gradients(), whole),
      .gradient_control = arena_.gradients_with_control().subspan(whole.offset, whole.length + 1),
      .residual = slice(residual(), whole),
      .mine = &selected_,
      .k = bucket.entries(selector_ ? input_.density : 1),
      .step = input_.exchange.value_or(input_.step)};
}

/// Leaves the sum in the gradients of the bucket; masks the momentum of the entries that were sent.
void SyncSgd::sum_over_ranks(Context& ctx, BucketState& state, const ExchangeStep& step,
                             Control& control) {
  const Bucket& bucket = state.bucket;
  state.exchange->run(ctx, comm_, step, control);
  if (control.nonfinite_rank >= 0) report_nonfinite(control, bucket.offset);
  const size_t summed = state.exchange->summed_elements(bucket.length);
  report_.k += selector_ ? step.k : summed;
  // entries that the codec rounded to zero are not in selected_ any more: they were not sent
  report_.nnz += selector_ ? selected_.count : summed;
  report_.stop |= control.stop;
  // entries that the exchange pruned keep their momentum
  if (correction_.masking)
    zero_where_sent(ctx, selected_.index_span(), step.gradient,
                    slice(local_momentum(), {bucket.offset, bucket.length}));
  if (!step.residual.empty() && !config_.error_feedback) ops::fill(ctx, step.residual, 0);
}

void SyncSgd::update_at_root(Context& ctx, BucketState& state, Stopwatch& clock) {
  const Segment whole{state.bucket.offset, state.bucket.length};
  if (comm_.rank() == 0) update(ctx, whole);
  report_.sec_update += lap(ctx, clock);
  state.exchange->publish(ctx, comm_, slice(arena_.values(), whole));
  report_.sec_exchange += lap(ctx, clock);
}

/// Early ranks wait here instead of in the exchange, so that wait and exchange can be timed
/// separately.
void SyncSgd::barrier_if_measuring(Context& ctx, Stopwatch& clock) {
  if (!config_.barrier_comm) return;
  barrier(ctx, *config_.barrier_comm);
  const double seconds = clock.lap();
  report_.sec_wait += seconds;
  report_.sec_exchange += seconds;
}

void SyncSgd::select(Context& ctx, const BucketState& state, Control& control) {
  const Bucket& bucket = state.bucket;
  slices_.clear();
  corrected_.clear();
  for (size_t number = state.first_slice; const Segment& segment : bucket.sparse) {
    const std::span<float> g = slice(arena_.gradients(), segment);
    const std::span<float> q = slice(local_momentum(), segment);
    if (correction_.clips_slices()) clip_norm(ctx, correction_.clip, g);
    if (!q.empty()) corrected_.push_back({g, q});
    slices_.push_back({.g = g,
                       .e = slice(residual(), segment),
                       .k = entries_to_keep(std::min(1.0, input_.density), segment.length),
                       .density = input_.density,
                       .base = static_cast<uint32_t>(segment.offset - bucket.offset),
                       .step = input_.step,
                       .slice = number++,
                       .warmup = input_.warmup,
                       .threshold = state.exchange->threshold()});
  }
  if (!corrected_.empty())
    correct_momentum(ctx, static_cast<float>(config_.momentum), config_.nesterov, corrected_);

  infos_.assign(slices_.size(), {});
  if (input_.density < 1)
    selector_->select_slices(ctx, slices_, infos_, selected_);
  else
    std::ranges::transform(slices_, infos_.begin(),
                           [&](const SelectStep& in) { return select_all(ctx, in, selected_); });
  for (size_t i = 0; i < infos_.size(); ++i) {
    if (infos_[i].nonfinite == SIZE_MAX || control.nonfinite != SIZE_MAX) continue;
    control.nonfinite = slices_[i].base + infos_[i].nonfinite;
    // of u: the sum may overflow where g does not
    control.nonfinite_value = infos_[i].nonfinite_value;
  }
  if (control.nonfinite != SIZE_MAX) selected_.count = 0;
}

/// Packs the segments, sums them over the ranks, and leaves the sums packed. Leaves zeros in the
/// gradients for an exchange that adds them to the residual by itself.
void SyncSgd::sum_dense_segments(Context& ctx, const Bucket& bucket) {
  Control control{.stop = input_.stop};
  const size_t length = bucket.dense_length();
  const std::span<float> packed = small_.as<float>().first(length + 1);
  copy_dense_segments(ctx, bucket, true);
  check_finite(ctx, packed.first(length), 0, control);
  if (control.nonfinite != SIZE_MAX) control.nonfinite = bucket.place_of_dense(control.nonfinite);
  small_exchange_->run(ctx, comm_,
                       {.gradient = packed.first(length),
                        .gradient_control = packed,
                        .residual = {},
                        .step = input_.step},
                       control);
  if (control.nonfinite_rank >= 0) report_nonfinite(control, 0);
  if (!one_rank_selects_) return;
  for (const Segment& segment : bucket.dense) ops::fill(ctx, slice(arena_.gradients(), segment), 0);
}

void SyncSgd::unpack_dense_segments(Context& ctx, const Bucket& bucket) {
  copy_dense_segments(ctx, bucket, false);
  if (!correction_.clips_slices()) return;
  for (const Segment& segment : bucket.dense)  // a sum over the ranks; the limit is that of a mean
    clip_norm(ctx, comm_.size() * correction_.clip, slice(arena_.gradients(), segment));
}

/// Copies the dense segments of the gradients to packed ones, or, without `pack`, back.
void SyncSgd::copy_dense_segments(Context& ctx, const Bucket& bucket, bool pack) {
  copies_.clear();
  size_t at = 0;
  for (const Segment& segment : bucket.dense) {
    const Tensor apart = flat(ctx, slice(arena_.gradients(), segment));
    const Tensor packed = flat(ctx, small_.as<float>().subspan(at, segment.length));
    copies_.push_back(pack ? ops::Transfer{apart, packed} : ops::Transfer{packed, apart});
    at += segment.length;
  }
  ops::transfer(ctx, copies_);
}

void SyncSgd::update(Context& ctx, const Segment& of) {
  const ops::SgdParams params{.lr = static_cast<float>(input_.lr),
                              .momentum = static_cast<float>(config_.momentum),
                              .weight_decay = static_cast<float>(config_.weight_decay),
                              .nesterov = config_.nesterov,
                              .scale = 1.0f / static_cast<float>(comm_.size())};
  bounds_within(decay_bounds_, of, decay_of_part_);
  bounds_within(corrected_bounds_, of, corrected_of_part_);
  ops::sgd_update(ctx, params, decay_of_part_, slice(arena_.gradients(), of), slice(momentum(), of),
                  slice(arena_.values(), of), corrected_of_part_);
}

void SyncSgd::report_nonfinite(const Control& control, size_t offset) const {
  // the words of other ranks are not checked before this
  check<Fault>(control.nonfinite < arena_.size() - offset &&
                   control.nonfinite_rank < comm_.size() && !std::isfinite(control.nonfinite_value),
               "[train] a control word names rank {}, element {} and value {}: a rank sent damaged "
               "data",
               control.nonfinite_rank, control.nonfinite, control.nonfinite_value);
  arena_.fail_nonfinite(control.nonfinite_rank, offset + control.nonfinite, control.nonfinite_value,
                        input_.step, input_.covers);
}

}  // namespace tw
