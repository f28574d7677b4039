#include "engine/planner.h"

#include <algorithm>
#include <climits>

namespace tw {

namespace {
constexpr size_t kAlignment = 64;
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }
}  // namespace

TensorRef Planner::make(Shape shape, DType dtype) {
  detail::PlannedTensor& t = tensors_.emplace_back();
  t.tensor = {nullptr, shape, dtype, ctx_->device()};
  t.first = INT_MAX;
  t.last = -1;
  return TensorRef(&t);
}

TensorRef Planner::persistent(Shape shape, DType dtype) {
  const TensorRef ref = make(shape, dtype);
  ref.planned_->persistent = true;
  return ref;
}

void Planner::use(std::initializer_list<TensorRef> tensors) {
  for (const TensorRef& ref : tensors) {
    if (!ref) continue;
    ref.planned_->first = std::min(ref.planned_->first, now_);
    ref.planned_->last = std::max(ref.planned_->last, now_);
  }
  ++now_;
}

void Planner::scratch(size_t bytes) { scratch_ = std::max(scratch_, bytes); }

Planner::Memory Planner::layout() {
  offsets_.assign(tensors_.size(), 0);
  memory_ = {};
  std::vector<size_t> shared;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const detail::PlannedTensor& t = tensors_[i];
    if (t.persistent) {
      offsets_[i] = memory_.persistent;
      memory_.persistent += aligned(t.tensor.bytes());
    } else if (t.last >= 0) {
      shared.push_back(i);
    }
  }

  // largest first, each at the lowest place that is free during its whole life
  std::ranges::stable_sort(shared, [&](size_t a, size_t b) {
    return tensors_[a].tensor.bytes() > tensors_[b].tensor.bytes();
  });
  std::vector<size_t> placed;  // ordered by offset
  for (const size_t i : shared) {
    const detail::PlannedTensor& t = tensors_[i];
    const size_t bytes = aligned(t.tensor.bytes());
    size_t offset = 0;
    for (const size_t j : placed) {
      const detail::PlannedTensor& other = tensors_[j];
      if (other.last < t.first || t.last < other.first) continue;
      if (offset + bytes <= offsets_[j]) break;
      offset = std::max(offset, offsets_[j] + aligned(other.tensor.bytes()));
    }
    offsets_[i] = offset;
    memory_.workspace = std::max(memory_.workspace, offset + bytes);
    const auto behind =
        std::ranges::upper_bound(placed, offset, {}, [&](size_t j) { return offsets_[j]; });
    placed.insert(behind, i);
  }
  memory_.scratch = aligned(scratch_);
  return memory_;
}

void Planner::commit() {
  layout();
  block_ = Buffer(ctx_->device(), memory_.total());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    detail::PlannedTensor& t = tensors_[i];
    if (!t.persistent && t.last < 0) continue;
    t.tensor.data = block_.data() + offsets_[i] + (t.persistent ? memory_.workspace : 0);
  }
  ctx_->set_scratch({block_.data() + memory_.workspace + memory_.persistent, memory_.scratch});
}

}  // namespace tw
