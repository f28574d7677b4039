// Weights in safetensors files, with torchvision's names and orders (OIHW, NCHW flatten).
#pragma once

#include <vector>

#include "engine/io/safetensors.h"
#include "engine/plan/arena.h"

namespace tw {

/// A stored parameter in torchvision's order; owns its copy.
struct ExportedTensor {
  std::vector<float> values;
  Shape shape;
  Tensor tensor() { return {values.data(), shape, DType::f32, Device::cpu}; }
};

/// The shape of a parameter in torchvision's order.
Shape exported_shape(const Parameter& p);
/// One parameter of a flat vector laid out like the arena (values or momentum).
ExportedTensor export_parameter(const Parameter& p, std::span<const float> stored);
/// The inverse of export_parameter; throws UserError when the shape differs.
void import_parameter(const Parameter& p, const Tensor& exported, std::span<float> stored);

/// Writes all parameters and statistics of the arena, under torchvision's names.
void save_weights(const std::filesystem::path& path, const ParameterArena& arena,
                  const std::map<std::string, std::string>& metadata = {});
/// Drops what the names of the file have before those of the network, as `module.` of PyTorch's
/// DataParallel and `_orig_mod.` of torch.compile, and returns it; empty unless every name has it.
std::string drop_prefix(SafetensorsReader& file, const ParameterArena& arena);
/// Whether two shapes have the same sizes in another order, as a matrix and its transpose.
bool axes_differ(const Shape& a, const Shape& b);
/// Throws UserError with the first three missing, extra or mis-shaped tensors, or tensors with a
/// NaN or an infinite element. Tensors whose name begins with `except` do not count, unless it is
/// empty.
void check_weights(const SafetensorsReader& file, const ParameterArena& arena,
                   const std::string& except = "");
/// Loads the weights of `file`, without `except`, into the arena, which is unchanged when anything
/// does not fit.
void load_weights(const SafetensorsReader& file, ParameterArena& arena,
                  const std::string& except = "");
/// The number of outputs of the last layer in `file`, if nothing else of it differs from that of
/// the network; 0 otherwise.
int64_t other_classes(const SafetensorsReader& file, const ParameterArena& arena);
/// What the names of the last layer's tensors begin with: `fc.`, `classifier.6.`
std::string head_prefix(const ParameterArena& arena);

/// Hash of all values and statistics, as `weights_hash` reports it.
uint64_t weights_hash(const ParameterArena& arena);

}  // namespace tw
