// ConvPlan: an executable plan of cuDNN's graph API for one pass of a convolution. Included by
// files in cuda/ only.
#pragma once

#include <cudnn_graph.h>

#include <array>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/core/dtype.h"
#include "engine/core/error.h"

namespace tw::cudnn {

/// Owns one backend descriptor of cuDNN. Set its attributes, then finalise it.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  Descriptor(Descriptor&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Descriptor();

  cudnnBackendDescriptor_t get() const { return handle_; }
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
           const void* values);
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void set(cudnnBackendAttributeName_t name, std::span<const int64_t> values);
  void set(cudnnBackendAttributeName_t name, int64_t value) { set(name, std::span(&value, 1)); }
  void set(cudnnBackendAttributeName_t name, float value) {
    set(name, CUDNN_TYPE_FLOAT, 1, &value);
  }
  /// Number of values written, at most `capacity`.
  int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t capacity,
              void* values) const;
  /// Finalises; returns false when cuDNN rejects the attributes. finalize() throws Fault instead.
  bool try_finalize();
  void finalize();

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
};

/// Dimensions in cuDNN's order (N, C, H, W), channels innermost in memory.
using Dims = std::array<int64_t, 4>;

enum class ConvPass : uint8_t { forward, backward_data, backward_filter };

/// Shapes and types of one pass. In a backward pass x, w and y may be dx, dw and dy.
struct Convolution {
  ConvPass pass;
  Dims x, w, y;
  DType x_type, w_type, y_type;
  int64_t stride, padding;
  bool accumulate = false;  ///< add to the output instead of overwriting it

  std::string text() const;  ///< shapes, types and pass as text; key of the tuning cache
};

/// Restrictions on the engines (cuDNN's kernels). `workspace`: bytes.
struct Limits {
  bool deterministic = false;
  bool tf32 = false;
  size_t workspace = size_t{1} << 30;
};

/// An engine proposed by cuDNN failed to run.
class Refused : public Fault {
 public:
  using Fault::Fault;
};

/// An engine with its knobs, ready to run.
class ConvPlan {
 public:
  /// `text` names engine and knobs, to find the same plan again.
  ConvPlan(Descriptor plan, Descriptor config, std::string text);

  size_t workspace_bytes() const { return workspace_bytes_; }
  const std::string& text() const { return text_; }
  /// Queues the pass on the handle's stream. Throws Refused when the engine cannot run it.
  void run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace);

 private:
  Descriptor config_, plan_, pointers_;
  std::array<void*, 4> bound_{};  // what pointers_ holds: x, w, y, workspace
  std::string text_;
  size_t workspace_bytes_ = 0;
};

/// What plans are built for: a cuDNN handle or, without a GPU, the description of a device.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* device = nullptr;
};

/// Calls `visit(plan)` for plans of `convolution` within `limits`, until it returns false. The
/// order is that of cuDNN's heuristics, best first. Each plan is built just before its visit.
void for_each_plan(const Target& target, const Convolution& convolution, const Limits& limits,
                   const std::function<bool(ConvPlan)>& visit);

}  // namespace tw::cudnn
