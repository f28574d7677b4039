#include "models/registry.h"

#include <algorithm>

namespace tw {

Registry<ModelEntry>& models() {
  static Registry<ModelEntry> registry("model");
  return registry;
}

std::string network_for(const std::string& model, const Shape& image) {
  const auto& network = models().find(model).value.network;
  return network ? network(image) : model;
}

std::string size_note(const std::string& model, const Shape& image) {
  const std::string network = network_for(model, image);
  const std::string size = fmt::format("{} x {}", image[0], image[1]);
  if (network != model) return fmt::format("{} is {} for images of {}", model, network, size);
  const std::optional<ImageSides>& sides = models().find(model).value.sides;
  if (!sides) return "";
  const auto note = [&](const char* bound, int64_t side, const std::string& others) {
    return fmt::format("{} is made for images of {} {} x {}; these are {} (for them: {})", model,
                       bound, side, side, size, others);
  };
  // models for such images, as examples
  std::string others;
  for (const auto& [name, entry] : models().entries())
    if (const auto& fit = entry.value.sides; fit && fit->least <= std::min(image[0], image[1]) &&
                                             fit->most >= std::max(image[0], image[1]))
      others += (others.empty() ? "" : ", ") + name;
  if (others.empty()) others = "none";
  if (std::max(image[0], image[1]) < sides->least) return note("at least", sides->least, others);
  if (std::min(image[0], image[1]) > sides->most) return note("up to", sides->most, others);
  return "";
}

}  // namespace tw
