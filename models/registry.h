// The models by name: how each is built, its default learning rate, and the images it is made for.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/core/registry.h"
#include "layers/layer.h"

namespace tw {

/// Inputs, outputs and initialisation of a model.
struct ModelSpec {
  Shape image{32, 32, 3};  ///< H, W, C of one input
  int64_t classes = 10;
  /// The last batch norm of each residual block starts with gamma = 0. (Goyal et al. 2017)
  bool zero_init = false;
  bool decay_all = false;  ///< weight decay also on batch norm and biases
};

/// Builds the network whose output is [N, classes] fp32 logits.
using ModelFactory = std::function<LayerPtr(ParameterArena&, const ModelSpec&)>;

/// The side of the images that a network is made for, in pixels. Others work, but are unusual.
struct ImageSides {
  int64_t least = 1, most = 1 << 20;
};

/// A learning rate for batch 32 and momentum 0.9, of a model that does not train at that of
/// `train`.
struct DefaultRate {
  double value;
  std::string reason;
};

struct ModelEntry {
  ModelFactory make{};
  std::optional<DefaultRate> rate{};
  std::optional<ImageSides> sides{};  ///< without, it takes any size
  /// Of a model that stands for one of several networks: the name of that for a size (H, W, C).
  std::function<std::string(const Shape& image)> network{};
};
Registry<ModelEntry>& models();
extern const char* const kResnet20;  ///< the default of programs
extern const char* const kResnet18;
extern const char* const kResnet50;

/// The network that `model` stands for with images of this size; `model` for all others.
std::string network_for(const std::string& model, const Shape& image);

/// One line on a model that stands for another network, or that is made for other images; empty if
/// there is nothing to say.
std::string size_note(const std::string& model, const Shape& image);

}  // namespace tw
