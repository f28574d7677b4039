#include "models/image_size.h"

#include <algorithm>

namespace tw {

Registry<ImageSides>& usual_sides() {
  static Registry<ImageSides> registry("image size of model");
  return registry;
}

Registry<std::function<std::string(const Shape& image)>>& networks_by_size() {
  static Registry<std::function<std::string(const Shape& image)>> registry("network of model");
  return registry;
}

std::string network_for(const std::string& model, const Shape& image) {
  const auto& entries = networks_by_size().entries();
  const auto found = entries.find(model);
  return found == entries.end() ? model : found->second.value(image);
}

std::string size_note(const std::string& model, const Shape& image) {
  const std::string network = network_for(model, image);
  const std::string size = fmt::format("{} x {}", image[0], image[1]);
  if (network != model) return fmt::format("{} is {} for images of {}", model, network, size);
  const auto& entries = usual_sides().entries();
  const auto found = entries.find(model);
  if (found == entries.end()) return "";
  const auto [least, most] = found->second.value;
  const auto note = [&](const char* bound, int64_t side, const std::string& others) {
    return fmt::format("{} is made for images of {} {} x {}; these are {} (for them: {})", model,
                       bound, side, side, size, others);
  };
  // models for such images, as examples
  std::string others;
  for (const auto& [name, entry] : entries)
    if (const ImageSides& sides = entry.value;
        sides.least <= std::min(image[0], image[1]) && sides.most >= std::max(image[0], image[1]))
      others += (others.empty() ? "" : ", ") + name;
  if (others.empty()) others = "none";
  if (std::max(image[0], image[1]) < least) return note("at least", least, others);
  if (std::min(image[0], image[1]) > most) return note("up to", most, others);
  return "";
}

}  // namespace tw
