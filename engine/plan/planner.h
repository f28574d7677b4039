// Planner: assigns every activation an offset in one workspace before the first step. Layers
// declare tensors and their uses in execution order; tensors with disjoint lifetimes share memory.
// A step allocates nothing.
#pragma once

#include <deque>
#include <initializer_list>
#include <span>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/context.h"

namespace tw {

namespace detail {
/// First and last operation that uses the content of a tensor.
struct Lifetime {
  int first, last;
};
struct PlannedTensor {
  Tensor tensor;                    // data is set by commit()
  std::vector<Lifetime> lifetimes;  // several for a recomputed tensor, all at one offset
  bool persistent = false;
};
}  // namespace detail

/// Handle of a planned tensor: its shape is known at once, its memory after commit(). Empty by
/// default.
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

  /// Declares a tensor, alive from its first use() to its last.
  TensorRef make(Shape shape, DType dtype);
  TensorRef make(Shape shape) { return make(shape, activations_); }
  /// Declares a tensor alive for the whole run (inputs, packed weights).
  TensorRef persistent(Shape shape, DType dtype);
  /// Declares one operation that reads or writes these tensors; call order is execution order.
  void use(std::initializer_list<TensorRef> tensors);
  /// The same for an operation that runs beside those declared later, until join().
  void use_beside(std::initializer_list<TensorRef> tensors);
  /// Declares that later operations wait for those of use_beside().
  void join();
  /// The operations and tensors declared so far.
  struct Position {
    size_t operations, tensors;
  };
  Position position() const { return {operations_.size(), tensors_.size()}; }
  /// Declares that the operations between `begin` and `end` run once more. The tensors they made
  /// are written again at the same offset and need not be kept in between.
  void recompute_range(Position begin, Position end);
  /// Whether layers that support it discard activations and recompute them in backward.
  bool recompute = false;

  /// A matrix product or convolution of the step: the work that every implementation must do.
  struct Product {
    int64_t flops, bytes;  ///< operations; bytes of the operands, each moved once
  };
  void product(const Product& product, int times = 1) {
    products_.insert(products_.end(), static_cast<size_t>(times), product);
  }
  const std::vector<Product>& products() const { return products_; }

  /// Declares that an operation uses `bytes` of Context::scratch().
  void scratch(size_t bytes);

  /// Bytes of the workspace (activations shared over time), of persistent tensors and of scratch.
  struct Memory {
    size_t workspace = 0, persistent = 0, scratch = 0;
    size_t total() const { return workspace + persistent + scratch; }
  };
  /// Assigns all offsets and returns the bytes needed; allocates nothing.
  Memory layout();
  /// Allocates the memory of layout(); every TensorRef then has its data. Throws OutOfMemory.
  void commit();
  /// The memory shared by activations; a step reads nothing there that it has not written.
  std::span<std::byte> workspace() const { return block_.as<std::byte>().first(memory_.workspace); }

 private:
  Context* ctx_;
  DType activations_;
  std::deque<detail::PlannedTensor> tensors_;
  std::vector<std::vector<TensorRef>> operations_;
  std::vector<TensorRef> beside_;  // used until join()
  std::vector<Product> products_;
  std::vector<size_t> offsets_;
  Memory memory_;
  size_t scratch_ = 0;
  Buffer block_;
};

}  // namespace tw
