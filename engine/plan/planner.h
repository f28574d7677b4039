// Planner: gives every activation its place in one workspace before the first step.
// Layers declare tensors and their uses in execution order; tensors whose lives do not overlap
// share memory. Nothing is allocated in a step.
#pragma once

#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/context.h"

namespace tw {

namespace detail {
/// First and last operation that needs a tensor's content.
struct Life {
  int first, last;
};
struct PlannedTensor {
  Tensor tensor;            // data is set by commit()
  std::vector<Life> lives;  // more than one: what is recomputed; at the same place
  bool persistent = false;
};
}  // namespace detail

/// A tensor of the plan; readable as a Tensor once the plan is committed. Empty by default.
class TensorRef {
 public:
  TensorRef() = default;
  explicit TensorRef(detail::PlannedTensor* planned) : planned_(planned) {}
  const Tensor& operator*() const { return planned_->tensor; }
  const Tensor* operator->() const { return &planned_->tensor; }
  explicit operator bool() const { return planned_ != nullptr; }
  bool operator==(const TensorRef&) const = default;

 private:
  friend class Planner;
  detail::PlannedTensor* planned_ = nullptr;
};

class Planner {
 public:
  /// `activations`: f32 or bf16.
  Planner(Context& ctx, DType activations) : ctx_(&ctx), activations_(activations) {}

  Context& ctx() const { return *ctx_; }
  DType activations() const { return activations_; }

  /// Declares a tensor; it lives from its first use to its last.
  TensorRef make(Shape shape, DType dtype);
  TensorRef make(Shape shape) { return make(shape, activations_); }
  /// Declares a tensor that keeps its memory for the whole run (inputs, packed weights).
  TensorRef persistent(Shape shape, DType dtype);
  /// One operation reads or writes these tensors; operations follow each other in call order.
  void use(std::initializer_list<TensorRef> tensors);
  /// Where the plan stands; recompute_range() repeats the operations between two such places.
  struct Mark {
    size_t operations, tensors;
  };
  Mark mark() const { return {operations_.size(), tensors_.size()}; }
  /// The operations from `begin` to `end` are done once more. Tensors that were made between them
  /// need not live until then: they are written anew, at the same place.
  void recompute_range(Mark begin, Mark end);
  /// Whether layers shall forget what they can compute again.
  bool recompute = false;

  /// What no implementation of a step comes round: its matrix products (or convolutions).
  struct Product {
    int64_t flops, bytes;  ///< additions and multiplications; of the operands, each moved once
  };
  void product(const Product& product, int times = 1) {
    products_.insert(products_.end(), static_cast<size_t>(times), product);
  }
  const std::vector<Product>& products() const { return products_; }

  /// An operation wants this much of Context::scratch().
  void scratch(size_t bytes);

  /// Bytes of the workspace (activations shared over time), of persistent tensors and of scratch.
  struct Memory {
    size_t workspace = 0, persistent = 0, scratch = 0;
    size_t total() const { return workspace + persistent + scratch; }
  };
  /// Places all tensors; no memory is spent yet.
  Memory layout();
  /// Allocates what layout() found; every TensorRef becomes usable.
  void commit();
  /// The memory that activations share; only what a step writes first may be read in it.
  std::span<std::byte> workspace() const { return block_.as<std::byte>().first(memory_.workspace); }

 private:
  Context* ctx_;
  DType activations_;
  std::deque<detail::PlannedTensor> tensors_;
  std::vector<std::vector<TensorRef>> operations_;
  std::vector<Product> products_;
  std::vector<size_t> offsets_;
  Memory memory_;
  size_t scratch_ = 0;
  Buffer block_;
};

}  // namespace tw
