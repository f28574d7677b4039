// The image sizes that networks are made for, and names that stand for a network by size.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/core/registry.h"
#include "engine/core/shape.h"

namespace tw {

/// The side of the images that a network is made for, in pixels. Others work, but are unusual.
struct ImageSides {
  int64_t least = 1, most = 1 << 20;
};
/// By model; one that is missing takes any size.
Registry<ImageSides>& usual_sides();

/// Models that stand for one of several networks: the name of the network for a size (H, W, C).
Registry<std::function<std::string(const Shape& image)>>& networks_by_size();

/// The network that `model` stands for with images of this size; `model` for all others.
std::string network_for(const std::string& model, const Shape& image);

/// One line on a model that stands for another network, or that is made for other images; empty if
/// there is nothing to say.
std::string size_note(const std::string& model, const Shape& image);

}  // namespace tw
