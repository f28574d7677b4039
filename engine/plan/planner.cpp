#include "engine/plan/planner.h"

#include <algorithm>

namespace tw {

namespace {
constexpr size_t kAlignment = 256;  // as cudaMalloc aligns: what was timed there runs alike
size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

/// Whether two tensors are ever alive at the same time.
bool overlap(const detail::PlannedTensor& a, const detail::PlannedTensor& b) {
  return std::ranges::any_of(a.lifetimes, [&](const detail::Lifetime& x) {
    return std::ranges::any_of(b.lifetimes, [&](const detail::Lifetime& y) {
      return x.first <= y.last && y.first <= x.last;
    });
  });
}
}  // namespace

TensorRef Planner::make(Shape shape, DType dtype) {
  detail::PlannedTensor& t = tensors_.emplace_back();
  t.tensor = {nullptr, shape, dtype, ctx_->device()};
  return TensorRef(&t);
}

TensorRef Planner::persistent(Shape shape, DType dtype) {
  const TensorRef ref = make(shape, dtype);
  ref.planned_->persistent = true;
  return ref;
}

void Planner::use(std::initializer_list<TensorRef> tensors) {
  const int now = static_cast<int>(operations_.size());
  operations_.emplace_back(tensors);
  for (const TensorRef& ref : tensors) {
    if (!ref) continue;
    if (ref.planned_->lifetimes.empty()) ref.planned_->lifetimes.push_back({now, now});
    ref.planned_->lifetimes.back().last = now;
  }
}

void Planner::use_beside(std::initializer_list<TensorRef> tensors) {
  use(tensors);
  beside_.insert(beside_.end(), tensors);
}

void Planner::join() {
  const int last = static_cast<int>(operations_.size()) - 1;
  for (const TensorRef& ref : beside_)
    if (ref) ref.planned_->lifetimes.back().last = last;
  beside_.clear();
}

void Planner::recompute_range(Position begin, Position end) {
  const int from = static_cast<int>(operations_.size());
  std::vector<const detail::PlannedTensor*> made;
  for (size_t i = begin.tensors; i < end.tensors; ++i) made.push_back(&tensors_[i]);
  for (size_t i = begin.operations; i < end.operations; ++i) {
    const int now = static_cast<int>(operations_.size());
    operations_.emplace_back(operations_[i]);
    for (const TensorRef& ref : operations_.back()) {
      if (!ref) continue;
      std::vector<detail::Lifetime>& lifetimes = ref.planned_->lifetimes;
      const bool anew = std::ranges::find(made, ref.planned_) != made.end();
      if (anew && lifetimes.back().last < from) lifetimes.push_back({now, now});
      lifetimes.back().last = now;
    }
  }
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
    } else if (!t.lifetimes.empty()) {
      shared.push_back(i);
    }
  }

  // largest first, each at the lowest offset that is free during its lifetimes
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
      if (!overlap(t, other)) continue;
      if (offset + bytes <= offsets_[j]) break;
      offset = std::max(offset, offsets_[j] + aligned(other.tensor.bytes()));
    }
    offsets_[i] = offset;
    memory_.workspace = std::max(memory_.workspace, offset + bytes);
    const auto next =
        std::ranges::upper_bound(placed, offset, {}, [&](size_t j) { return offsets_[j]; });
    placed.insert(next, i);
  }
  memory_.scratch = aligned(scratch_);
  return memory_;
}

void Planner::commit() {
  layout();
  block_ = Buffer(ctx_->device(), memory_.total());
  for (size_t i = 0; i < tensors_.size(); ++i) {
    detail::PlannedTensor& t = tensors_[i];
    if (!t.persistent && t.lifetimes.empty()) continue;
    t.tensor.data = block_.data() + offsets_[i] + (t.persistent ? memory_.workspace : 0);
  }
  ctx_->set_scratch({block_.data() + memory_.workspace + memory_.persistent, memory_.scratch});
}

}  // namespace tw
