// The training step of a run, as docs/architecture.md describes it.
#include "apps/common/recording.h"
#include "apps/train/evaluate.h"
#include "apps/train/run.h"
#include "engine/ops/vector.h"

namespace tw {

StepRecord Run::train_step() {
  begin_step();
  for (int64_t part = 0; part < config_.accumulate; ++part) {
    load_micro_batch(comm_, *prefetcher_, model_);
    lap(&PhaseSeconds::data);
    const PassArgs pass = pass_of(part);
    forward(pass);
    backward(pass);
  }
  update();
  return step_;
}

void Run::lap(double PhaseSeconds::*phase) { step_.phases.*phase += watch_.lap(); }

void Run::begin_step() {
  watch_ = {};
  step_ = {};
  step_.lr = rate(at_.batch);
  step_.density = density();
  optimizer_->begin({.step = static_cast<uint64_t>(at_.step),
                     .lr = step_.lr,
                     .density = step_.density,
                     .warmup = in_density_warmup(config_, at_.epoch),
                     .stop = stop_.load(),
                     .last = last_step()});
  lap(&PhaseSeconds::select);  // the decay of the residual
}

PassArgs Run::pass_of(int64_t part) {
  PassArgs pass{
      .ctx = ctx_,
      .accumulate = part > 0,
      .seed = static_cast<uint64_t>(config_.seed) * 65536 + static_cast<uint64_t>(comm_.rank()),
      .step = static_cast<uint64_t>(at_.step * config_.accumulate + part)};
  if (part == config_.accumulate - 1)
    pass.on_gradient_ready = [this](const Parameter& parameter) {
      if (config_.overlap) clear_if_frozen(parameter);
      optimizer_->gradient_ready(parameter);
    };
  return pass;
}

void Run::forward(const PassArgs& pass) {
  passes_->queue_forward(pass, 1.0f / static_cast<float>(config_.accumulate));
  lap(&PhaseSeconds::forward);
  prefetcher_->prefetch();
  lap(&PhaseSeconds::data);
  const ops::LossSums sums = model_.take_sums(ctx_);
  step_.loss += sums.loss;
  step_.top1 += sums.top1;
  step_.images += sums.count;
  lap(&PhaseSeconds::forward);
}

void Run::backward(const PassArgs& pass) {
  passes_->backward(pass);
  ctx_.synchronize();
  lap(&PhaseSeconds::backward);
}

void Run::update() {
  comm_.computed(step_.phases.forward + step_.phases.backward, static_cast<uint64_t>(at_.step));
  lap(&PhaseSeconds::backward);
  if (!config_.freeze.empty() && !config_.overlap)
    for (const Parameter& parameter : model_.arena().parameters()) clear_if_frozen(parameter);
  if (gradients_ && at_.step % config_.analyze_every == 0)
    gradients_->add(host_, model_.arena().host_gradients().span(),
                    HostFloats(ctx_, optimizer_->residual()).span(), step_.density);
  std::vector<float> g, u;  // to be saved: behind the exchange, whose bytes are counted
  if (config_.save_gradients > 0 && (at_.step + 1) % config_.save_gradients == 0) {
    const HostFloats gradient = model_.arena().host_gradients();
    const HostFloats residual(ctx_, optimizer_->residual());
    g.assign(gradient.span().begin(), gradient.span().end());
    u = g;
    if (!residual.span().empty()) ops::add(host_, residual.span(), u);
  }
  const StepReport report = optimizer_->finish();
  if (!g.empty()) save_gradients(g, u);
  step_.phases.select += report.sec_select;
  step_.phases.exchange = report.sec_exchange;
  step_.phases.update = report.sec_update;
  watch_.lap();  // finish() has timed its phases; freezing and statistics count in none
  model_.refresh(ctx_);
  lap(&PhaseSeconds::update);
  step_.wait = report.sec_wait;
  step_.nnz = static_cast<double>(report.nnz);
  step_.k = static_cast<double>(report.k);
  step_.bytes = static_cast<double>(report.bytes_sent);
  step_.seconds = watch_.total();
  step_.step = ++at_.step;
  ++at_.batch;
  stop_seen_ = report.stop;
}

void Run::save_gradients(std::span<float> g, std::span<float> u) {
  const OperationScope operation(comm_, "saving the gradients");
  const Recording of{.step = at_.step + 1,
                     .rank = comm_.rank(),
                     .ranks = comm_.size(),
                     .sparsifier = config_.sparsifier,
                     .density = step_.density};
  files_.write(comm_, recording_file(of, model_.arena(), g, u), folder_.gradients(),
               recording_prefix(of.step));
}

void Run::clear_if_frozen(const Parameter& parameter) {
  if (parameter.frozen) ops::fill(ctx_, parameter.in(model_.arena().gradients()), 0);
}

int64_t Run::steps_ahead() const {
  int64_t n = std::min(captured_step_->max_steps(), train_loader_->batches() - at_.batch);
  if (config_.max_steps > 0) n = std::min(n, config_.max_steps - at_.step);
  const int64_t every = config_.checkpoint_steps;
  return every > 0 ? std::min(n, every - at_.step % every) : n;
}

void Run::train_captured_steps() {
  const int64_t steps = steps_ahead();
  std::vector<float> rates;
  for (int64_t i = 0; i < steps; ++i) rates.push_back(static_cast<float>(rate(at_.batch + i)));
  Stopwatch watch;
  const double waited = captured_step_->waited();
  const auto sums = captured_step_->run(static_cast<uint64_t>(at_.step), rates);
  const double seconds = watch.total() / static_cast<double>(steps);
  const double data_seconds = (captured_step_->waited() - waited) / static_cast<double>(steps);
  stop_seen_ = stop_.load();
  const auto entries = static_cast<double>(model_.arena().size());
  for (const ops::LossSums& one : sums) {
    const double lr = rate(at_.batch++);
    log_step({.step = ++at_.step,
              .lr = lr,
              .density = 1,
              .loss = one.loss,
              .top1 = one.top1,
              .images = one.count,
              .nnz = entries,
              .k = entries,
              .seconds = seconds,
              .phases = {.data = data_seconds}});
  }
}

}  // namespace tw
