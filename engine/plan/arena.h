// ParameterArena: all parameters of a model in one contiguous fp32 vector without padding, in the
// order of declaration; gradients in a second vector, batch-norm statistics in a third.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "engine/core/buffer.h"
#include "engine/core/copy.h"

namespace tw {

enum class Init : uint8_t { zeros, ones, normal };

/// The deviation of He et al., ICCV 2015, for weights of a sum of `inputs` products.
inline float he_deviation(int64_t inputs) { return std::sqrt(2.0f / static_cast<float>(inputs)); }

/// Order of a parameter's elements compared with torchvision's files.
enum class Layout : uint8_t {
  plain,        ///< the same
  conv_ohwi,    ///< stored O,H,W,I; torchvision has O,I,H,W
  linear_nhwc,  ///< columns in order h,w,c (NHWC flatten); torchvision has c,h,w
};

struct Parameter {
  std::string name;  ///< torchvision's name, e.g. `layer1.0.conv1.weight`
  Shape shape;       ///< as stored
  Init init = Init::zeros;
  float deviation = 0;  ///< for normal, whose mean is 0
  bool decay = true;    ///< weight decay applies (not to batch norm and biases)
  bool frozen = false;  ///< keeps its value: who computes gradients sets its gradient to 0
  Layout layout = Layout::plain;
  Shape flattened{};  ///< for linear_nhwc: (h, w, c) of one flattened sample
  size_t offset = 0;  ///< first element in its arena; set by the arena
  size_t length() const { return static_cast<size_t>(shape.numel()); }
  /// The elements of this parameter in a vector laid out like the arena.
  template <class T>
  std::span<T> in(std::span<T> flat) const {
    return flat.subspan(offset, length());
  }
};

class ParameterArena {
 public:
  /// Most parameters of a compressed exchange: indices have 32 bits.
  static constexpr size_t kMostIndexed = UINT32_MAX - 1;

  /// Declares a trained parameter; the reference stays valid. Throws on a second use of a name.
  const Parameter& add(Parameter parameter);
  /// Declares one of any number of extents; of more than four, the last count only by their
  /// product. UserError on a second use of a name, an extent below 1, or more than kMostIndexed.
  void add(const std::string& name, std::span<const int64_t> extents);
  /// Declares a statistic that is saved and averaged but not trained (running mean, variance).
  const Parameter& add_statistic(Parameter parameter);
  /// Applies weight decay to every parameter, batch norm and biases included.
  void decay_all();

  /// Freezes the parameters whose name matches `pattern` (with * and ?) or begins with `pattern`
  /// and a dot. Returns how many do.
  size_t freeze(const std::string& pattern);

  /// Allocates the vectors on ctx's device and initialises values from `seed` (same on all ranks),
  /// or sets them to 0 without one. On a GPU `ctx` must outlive the arena.
  void allocate(Context& ctx, std::optional<uint64_t> seed);

  size_t size() const { return size_; }  ///< d, the number of trained parameters
  size_t statistics_size() const { return statistics_size_; }
  const std::deque<Parameter>& parameters() const { return parameters_; }
  const std::deque<Parameter>& statistics() const { return statistics_; }

  std::span<float> values() const { return values_.as<float>(); }
  std::span<float> gradients() const { return gradients_.as<float>().first(size_); }
  /// The gradients and one more float at the end, the status slot of the exchange.
  std::span<float> gradients_with_control() const { return gradients_.as<float>(); }
  std::span<float> statistic_values() const { return statistic_values_.as<float>(); }

  // Host views of the same vectors; see HostFloats.
  HostFloats host_values() const { return {ctx_, values()}; }
  HostFloats host_gradients() const { return {ctx_, gradients()}; }
  HostFloats host_statistics() const { return {ctx_, statistic_values()}; }

  Tensor value(const Parameter& p) const;
  Tensor gradient(const Parameter& p) const;
  Tensor statistic(const Parameter& p) const;

  /// Hash of names, shapes and order, to compare ranks and checkpoints.
  uint64_t layout_hash() const;
  /// The trained parameter that holds flat element `index`.
  const Parameter& at(size_t index) const;
  /// Throws the CollectiveFault of a NaN or infinite gradient `value` at flat element `index`,
  /// found by `rank` in one of `steps` steps, the last of which is `step`.
  [[noreturn]] void fail_nonfinite(int rank, size_t index, float value, uint64_t step,
                                   uint64_t steps = 1) const;

 private:
  const Parameter& add_to(std::deque<Parameter>& list, size_t& size, Parameter parameter);

  std::deque<Parameter> parameters_, statistics_;
  size_t size_ = 0, statistics_size_ = 0;
  Context* ctx_ = nullptr;  // null on the CPU
  Buffer values_, gradients_, statistic_values_;
};

}  // namespace tw
