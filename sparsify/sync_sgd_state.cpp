// The state of SyncSgd: what a checkpoint holds, and what becomes of it on other ranks and with
// other parts.
#include <algorithm>

#include "engine/core/copy.h"
#include "engine/ops/sgd.h"
#include "engine/ops/vector.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

std::span<float> part_of(std::span<float> x, const Segment& segment) {
  return x.empty() ? x : x.subspan(segment.offset, segment.length);
}

/// y += factor x
void add_multiple(Context& ctx, float factor, std::span<const float> x, std::span<float> y) {
  // the update of plain SGD
  ops::sgd_update(ctx,
                  {.lr = -factor, .momentum = 0, .weight_decay = 0, .nesterov = false, .scale = 1},
                  {}, x, {}, y);
}

}  // namespace

std::vector<NamedVector> SyncSgd::common_vectors() {
  std::vector<NamedVector> vectors{{"momentum", {ctx_, momentum()}, Holds::momentum}};
  if (!estimates().empty()) vectors.push_back({"estimates", {ctx_, estimates()}});
  return vectors;
}

std::vector<NamedVector> SyncSgd::own_vectors() {
  std::vector<NamedVector> vectors{{"residual", {ctx_, residual()}}};
  if (!local_momentum().empty()) vectors.push_back({"local_momentum", {ctx_, local_momentum()}});
  return vectors;
}

std::vector<NamedState> SyncSgd::states() {
  std::vector<NamedState> states;
  const Sparsifier& parts = plan_.sparsifier;
  for (size_t number = 0; const Bucket& bucket : plan_.buckets)
    if (!bucket.packed)
      states.push_back({fmt::format("exchange.{}", number++), bucket.exchange->state(),
                        "exchange " + parts.exchange, bucket.exchange->common_state()});
  if (selector_)
    states.push_back(
        {"selector." + parts.selector, selector_->state(), "selector " + parts.selector});
  std::erase_if(states, [](const NamedState& state) { return state.bytes.empty(); });
  return states;
}

std::vector<Segment> SyncSgd::segments_without_momentum() const {
  std::vector<Segment> segments;
  ops::for_each_sgd_range(decay_bounds_, corrected_bounds_, arena_.size(),
                          [&](size_t begin, size_t end, bool decays, bool corrected) {
                            if (corrected && !decays) segments.push_back({begin, end - begin});
                          });
  return segments;
}

bool SyncSgd::has_unreachable_residual() const {
  const auto holds = [&](const Buffer& vector, const std::vector<Segment>& segments) {
    return std::ranges::any_of(segments, [&](const Segment& segment) {
      const HostFloats values(ctx_, part_of(vector.as<float>(), segment));
      return std::ranges::any_of(values.span(), [](float value) { return value != 0; });
    });
  };
  const auto owes = [&](const std::vector<Segment>& segments) {
    return holds(residual_, segments) || holds(local_momentum_, segments);
  };
  const auto unreachable = [&](const Bucket& bucket) {
    const bool selects =
        !bucket.packed && bucket.exchange->selects_for(comm_.rank(), comm_.size()) > 0;
    return !selects && owes(bucket.segments);
  };
  return std::ranges::any_of(plan_.buckets, unreachable) ||
         holds(momentum_, segments_without_momentum());
}

void SyncSgd::adopt_mean_residual() {
  if (!estimates().empty()) {  // every rank has the mean of the estimates
    ops::fill(ctx_, estimates(), 0);
    for (const Bucket& bucket : plan_.buckets)
      for (const Segment& segment : bucket.segments)
        if (bucket.packed)
          ops::fill(ctx_, part_of(residual(), segment), 0);  // an estimate is not owed
        else
          add_multiple(ctx_, -static_cast<float>(comm_.size()), part_of(residual(), segment),
                       part_of(estimates(), segment));
  }
  // with Nesterov, the momentum before the selection is m times that after the mean
  const auto m = static_cast<float>(config_.nesterov ? config_.momentum : 1);
  const auto move = [&](float factor, std::span<float> from, std::span<float> to) {
    if (from.empty()) return;
    add_multiple(ctx_, factor, from, to);
    ops::fill(ctx_, from, 0);
  };
  for (const Segment& segment : plan_.packed) {
    settles_ = settles_ || !residual().empty();
    move(1 / m, part_of(local_momentum(), segment), part_of(momentum(), segment));
  }
  for (const Segment& segment : segments_without_momentum())
    move(m, part_of(momentum(), segment), part_of(local_momentum(), segment));
  for (const Bucket& bucket : plan_.buckets) {
    const auto share = static_cast<float>(bucket.exchange->selects_for(comm_.rank(), comm_.size()));
    if (share == 1 || bucket.packed) continue;
    for (const std::span<float> owed : {residual(), local_momentum()})
      for (const Segment& segment : bucket.segments)
        if (!owed.empty()) ops::scale(ctx_, part_of(owed, segment), share);
  }
}

/// Applies what is owed of packed segments, the same on all ranks: velocities to the parameters,
/// gradients to the sum.
void SyncSgd::settle() {
  const bool velocities = plan_.sparsifier.momentum_before;
  const float factor =
      velocities ? -static_cast<float>(input_.lr) : static_cast<float>(comm_.size());
  const std::span<float> target = velocities ? arena_.values() : arena_.gradients();
  for (const Segment& segment : plan_.packed) {
    add_multiple(ctx_, factor, part_of(residual(), segment), part_of(target, segment));
    ops::fill(ctx_, part_of(residual(), segment), 0);
  }
  settles_ = false;
}

}  // namespace tw
