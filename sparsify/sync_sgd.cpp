#include "sparsify/sync_sgd.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "comm/collectives/collectives.h"
#include "engine/core/copy.h"
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

}  // namespace

SyncSgd::SyncSgd(Context& ctx, Communicator& comm, ParameterArena& arena, const SgdConfig& config,
                 const Settings& settings)
    : ctx_(ctx),
      comm_(comm),
      arena_(arena),
      config_(config),
      plan_(arena, config, settings, gather(comm, comm.machine())),
      exchange_(exchanges().find(plan_.sparsifier.exchange).value),
      decay_bounds_(bounds_of_decay(arena)),
      corrected_bounds_(bounds_of_correction(arena, plan_.sparsifier)),
      waiting_for_(plan_.buckets.size()) {
  decay_of_part_.reserve(decay_bounds_.size() + 1);
  corrected_of_part_.reserve(corrected_bounds_.size() + 1);
  check(arena.size() <= ParameterArena::kMostIndexed,
        "[train] the model has {} parameters; indices have 32 bits, so it may have at most {}",
        arena.size(), ParameterArena::kMostIndexed);
  const Sparsifier& parts = plan_.sparsifier;
  const size_t bytes = arena.size() * sizeof(float);
  if (config.momentum != 0) momentum_ = Buffer(ctx.device(), bytes);
  if (parts.momentum_before) {
    correction_ = momentum_correction(settings, config.momentum, comm.size());
    if (config.momentum != 0) local_momentum_ = Buffer(ctx.device(), bytes);
  }
  if (!parts.selector.empty()) {
    const SelectorRank rank{.rank = comm.rank(), .seed = config.seed, .slices = plan_.slices};
    selector_ = selectors().find(parts.selector).value.make(ctx, settings, rank);
  }
  if (keeps_residual(parts)) residual_ = Buffer(ctx.device(), bytes);
  if (config.ef21) {
    estimates_ = Buffer(ctx.device(), bytes);
    gradient_ = Buffer(ctx.device(), bytes);
  }
  for (const Bucket& bucket : plan_.buckets) {
    const size_t floats = bucket.packed ? bucket.elements() + 1 : 0;
    packed_.emplace_back(ctx.device(), floats * sizeof(float));
  }
  if (config.overlap) {
    thread_ctx_ = std::make_unique<Context>(ctx.device(), ctx.threads(), ctx.gpu());
    thread_ = std::make_unique<CommThread>([this] { thread_ctx_->bind_thread(); },
                                           [this](size_t i) { exchange_bucket(*thread_ctx_, i); });
  }
}

void SyncSgd::begin(const StepInput& input) {
  input_ = input;
  report_ = {};
  bytes_before_ = comm_.bytes_sent();
  ready_ = 0;
  if (config_.residual_decay != 1)
    ops::scale(ctx_, residual(), static_cast<float>(config_.residual_decay));
  std::ranges::transform(plan_.buckets, waiting_for_.begin(), &Bucket::parameters);
  if (thread_) thread_->start();
}

void SyncSgd::gradient_ready(const Parameter& parameter) {
  if (!thread_) return;
  const auto bucket =
      std::ranges::lower_bound(plan_.buckets, parameter.offset, std::greater<>(), &Bucket::offset);
  --waiting_for_[static_cast<size_t>(bucket - plan_.buckets.begin())];
  const size_t before = ready_;
  while (ready_ < waiting_for_.size() && waiting_for_[ready_] == 0) ++ready_;
  if (ready_ == before) return;
  ctx_.synchronize();  // the thread has a stream of its own
  thread_->release(ready_);
}

StepReport SyncSgd::finish() {
  Stopwatch clock;
  const size_t buckets = plan_.buckets.size();
  if (thread_) {
    ctx_.synchronize();
    thread_->release(buckets);
    thread_->wait();
    // the time that remained after backward; the rest ran during it
    report_.sec_select = 0;
    report_.sec_exchange = lap(ctx_, clock);
  } else {
    if (correction_.clips_whole)
      clip_norm(ctx_, correction_.clip, arena_.gradients(), norm_blocks_);
    for (size_t i = 0; i < buckets; ++i) exchange_bucket(ctx_, i);
  }
  report_.bytes_sent = comm_.bytes_sent() - bytes_before_;
  lap(ctx_, clock);
  for (size_t i = 0; i < buckets; ++i)  // behind the exchange that clears their gradients
    if (const Bucket& bucket = plan_.buckets[i]; bucket.packed)
      unpack(ctx_, bucket, packed_[i].as<float>());
  if (settles_) settle();
  if (!exchange_.updates_at_root) update(ctx_, {0, arena_.size()});
  report_.sec_update += lap(ctx_, clock);
  return report_;
}

void SyncSgd::exchange_bucket(Context& ctx, size_t number) {
  const OperationScope operation(comm_, plan_.sparsifier.exchange.c_str());
  const Bucket& bucket = plan_.buckets[number];
  const ExchangeStep step = exchange_step(number);
  Stopwatch clock;
  Control control{.stop = input_.stop};
  selected_.count = 0;

  barrier_if_measuring(ctx, clock);
  if (bucket.packed) pack(ctx, bucket, step.gradient);
  if (config_.ef21 && !bucket.packed)
    for (const Segment& segment : bucket.segments)
      copy_bytes(ctx, std::as_bytes(slice(arena_.gradients(), segment)),
                 std::as_writable_bytes(slice(gradient_.as<float>(), segment)));
  bucket.exchange->prepare(ctx, comm_, step, control);
  report_.sec_exchange += lap(ctx, clock);

  if (bucket.packed || !selector_) {
    if (!step.residual.empty()) ops::add(ctx, step.residual, step.gradient);  // u = g + e
    control.record(name_nonfinite(ctx, step.gradient));
  } else if (bucket.exchange->selects(comm_, step)) {
    select(ctx, bucket, control);
  }
  report_.sec_select += lap(ctx, clock);

  barrier_if_measuring(ctx, clock);
  bucket.exchange->run(ctx, comm_, step, control);
  if (control.nonfinite_rank >= 0) report_nonfinite(control, bucket);
  report_.stop |= control.stop;
  if (!bucket.packed) account(ctx, bucket, step);
  if (config_.ef21 && !bucket.packed) add_to_estimates(ctx, bucket);
  report_.sec_exchange += lap(ctx, clock);
  if (exchange_.updates_at_root) update_at_root(ctx, bucket, clock);
}

ExchangeStep SyncSgd::exchange_step(size_t number) {
  const Bucket& bucket = plan_.buckets[number];
  const Segment whole{bucket.offset, bucket.length};
  const std::span<float> vector =
      bucket.packed ? packed_[number].as<float>()
                    : arena_.gradients_with_control().subspan(whole.offset, whole.length + 1);
  return {.gradient = vector.first(vector.size() - 1),
          .gradient_control = vector,
          .residual = bucket.packed ? std::span<float>{} : slice(residual(), whole),
          .mine = &selected_,
          .k = bucket.entries(selector_ ? input_.density : 1),
          .step = input_.exchange.value_or(input_.step)};
}

/// Counts what was sent, and clears what the residual and momentum owe no more.
void SyncSgd::account(Context& ctx, const Bucket& bucket, const ExchangeStep& step) {
  const bool whole = step.step < bucket.exchange->dense_exchanges();
  const size_t summed = whole ? bucket.length : bucket.exchange->summed_elements(bucket.length);
  report_.k += selector_ ? step.k : summed;
  // entries that the codec rounded to zero are not in selected_ any more: they were not sent
  report_.nnz += selector_ ? selected_.count : summed;
  // entries that the exchange pruned keep their momentum
  if (correction_.masking)
    zero_where_sent(ctx, selected_.index_span(), step.gradient,
                    slice(local_momentum(), {bucket.offset, bucket.length}));
  if (!step.residual.empty() && !config_.error_feedback) ops::fill(ctx, step.residual, 0);
}

/// From what was not sent of u and the sum of what was: -h_i in the residual, and H as the sum.
void SyncSgd::add_to_estimates(Context& ctx, const Bucket& bucket) {
  for (const Segment& segment : bucket.segments) {
    const std::span<float> g = slice(arena_.gradients(), segment),
                           sum = slice(estimates(), segment);
    ops::subtract(ctx, slice(gradient_.as<float>(), segment), slice(residual(), segment));
    ops::add(ctx, g, sum);
    copy_bytes(ctx, std::as_bytes(sum), std::as_writable_bytes(g));
  }
}

void SyncSgd::update_at_root(Context& ctx, const Bucket& bucket, Stopwatch& clock) {
  const Segment whole{bucket.offset, bucket.length};
  if (comm_.rank() == 0) update(ctx, whole);
  report_.sec_update += lap(ctx, clock);
  bucket.exchange->publish(ctx, comm_, slice(arena_.values(), whole));
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

void SyncSgd::select(Context& ctx, const Bucket& bucket, Control& control) {
  slices_.clear();
  corrected_.clear();
  for (size_t i = 0; i < bucket.segments.size(); ++i) {
    const Segment& segment = bucket.segments[i];
    const double density = bucket.density(i, input_.density);
    const std::span<float> g = slice(arena_.gradients(), segment);
    const std::span<float> q = slice(local_momentum(), segment);
    if (correction_.clips_slices()) clip_norm(ctx, correction_.clip, g, norm_blocks_);
    if (!q.empty()) corrected_.push_back({g, q});
    slices_.push_back({.g = g,
                       .e = slice(residual(), segment),
                       .k = entries_to_keep(std::min(1.0, density), segment.length),
                       .density = density,
                       .base = static_cast<uint32_t>(segment.offset - bucket.offset),
                       .step = input_.step,
                       .slice = bucket.first_slice + i,
                       .warmup = input_.warmup,
                       .threshold = bucket.exchange->threshold()});
  }
  if (!corrected_.empty())
    correct_momentum(ctx, static_cast<float>(config_.momentum), config_.nesterov, corrected_);

  infos_.assign(slices_.size(), {});
  for (size_t begin = 0, end = 0; begin < slices_.size(); begin = end) {
    const auto whole = [&](size_t i) { return slices_[i].density >= 1; };
    while (end < slices_.size() && whole(end) == whole(begin)) ++end;
    const auto part = std::span(slices_).subspan(begin, end - begin);
    const auto infos = std::span(infos_).subspan(begin, end - begin);
    if (!whole(begin))
      selector_->select_slices(ctx, part, infos, selected_);
    else
      std::ranges::transform(part, infos.begin(),
                             [&](const SelectStep& in) { return select_all(ctx, in, selected_); });
  }
  // of u: the sum may overflow where g does not
  for (size_t i = 0; i < infos_.size(); ++i) control.record(infos_[i], slices_[i].base);
  if (control.nonfinite != SIZE_MAX) selected_.count = 0;
}

/// Copies the segments of a bucket to memory of their own.
void SyncSgd::pack(Context& ctx, const Bucket& bucket, std::span<float> packed) {
  copy_segments(ctx, bucket, packed, true);
  if (!exchange_.one_rank_selects) return;
  // a rank that does not select adds all gradients of the slice to its residual
  for (const Segment& segment : bucket.segments)
    ops::fill(ctx, slice(arena_.gradients(), segment), 0);
}

void SyncSgd::unpack(Context& ctx, const Bucket& bucket, std::span<float> packed) {
  copy_segments(ctx, bucket, packed, false);
  if (!correction_.clips_slices()) return;
  for (const Segment& segment : bucket.segments)  // a sum over the ranks; the limit is of a mean
    clip_norm(ctx, comm_.size() * correction_.clip, slice(arena_.gradients(), segment),
              norm_blocks_);
}

/// Copies the segments of the gradients to packed ones, or, without `pack`, back.
void SyncSgd::copy_segments(Context& ctx, const Bucket& bucket, std::span<float> packed,
                            bool pack) {
  copies_.clear();
  for (size_t at = 0; const Segment& segment : bucket.segments) {
    const Tensor apart = flat(ctx, slice(arena_.gradients(), segment));
    const Tensor whole = flat(ctx, packed.subspan(at, segment.length));
    copies_.push_back(pack ? ops::Transfer{apart, whole} : ops::Transfer{whole, apart});
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

void SyncSgd::report_nonfinite(const Control& control, const Bucket& bucket) const {
  // the words of other ranks are not checked before this
  check<Fault>(control.nonfinite < bucket.elements() && control.nonfinite_rank < comm_.size() &&
                   !std::isfinite(control.nonfinite_value),
               "[train] a control word names rank {}, element {} and value {}: a rank sent damaged "
               "data",
               control.nonfinite_rank, control.nonfinite, control.nonfinite_value);
  arena_.fail_nonfinite(control.nonfinite_rank, bucket.place(control.nonfinite),
                        control.nonfinite_value, input_.step, input_.covers);
}

}  // namespace tw
