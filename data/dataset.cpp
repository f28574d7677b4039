#include "data/dataset.h"

namespace tw {

Registry<DatasetEntry>& datasets() {
  static Registry<DatasetEntry> registry{"dataset"};
  return registry;
}

std::string dataset_in(const std::filesystem::path& dir, const std::string& other) {
  for (const auto& [name, entry] : datasets().entries())
    if (entry.value.recognises(dir)) return name;
  return other;
}

}  // namespace tw
