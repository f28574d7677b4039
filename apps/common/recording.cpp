#include "apps/common/recording.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "apps/common/vector_file.h"
#include "engine/core/error.h"
#include "engine/io/json.h"

namespace tw {

namespace {

using RecordedJson = nlohmann::json;

/// The integer in the metadata under `key`; `otherwise` when there is none.
int64_t integer_in(const SafetensorsReader& file, const char* key, int64_t otherwise) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return otherwise;
  const std::string& text = found->second;
  int64_t value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  check(error == std::errc{} && stop == end && value >= 0 && value <= INT32_MAX,
        "[recording] {}: its {} is \"{}\"; expected a number from 0", file.path().string(), key,
        text);
  return value;
}

/// A shape of any number of extents; the last ones count only by their product. `product`: the most
/// elements.
Shape folded_shape(const std::vector<int64_t>& extents, size_t product) {
  std::vector<int64_t> shape;
  for (const int64_t extent : extents) {
    check(extent > 0 && static_cast<size_t>(extent) <= product, "an extent is {}", extent);
    product /= static_cast<size_t>(extent);
    if (shape.size() < Shape::kMaxRank)
      shape.push_back(extent);
    else
      shape.back() *= extent;
  }
  if (shape.empty()) shape.push_back(1);
  return Shape(std::span<const int64_t>(shape));
}

/// The names and shapes in the text of `tensors`, of d elements.
std::vector<std::pair<std::string, Shape>> tensors_in(const std::string& text, size_t d) {
  std::vector<std::pair<std::string, Shape>> tensors;
  std::set<std::string> names;
  size_t elements = 0;
  for (const RecordedJson& tensor : parse_json<RecordedJson>(text, "JSON")) {
    const std::string name = tensor.at(0);
    std::vector<int64_t> extents;
    for (const RecordedJson& extent : tensor.at(1)) extents.push_back(integer_of(extent));
    check(names.insert(name).second, "two tensors are called {}", name);
    tensors.emplace_back(name, folded_shape(extents, d));
    elements += static_cast<size_t>(tensors.back().second.numel());
  }
  check(elements == d, "they have {} elements; the vector has {}", elements, d);
  return tensors;
}

}  // namespace

void Recording::declare(ParameterArena& arena) const {
  for (const auto& [name, shape] : tensors) arena.add({.name = name, .shape = shape});
}

std::string recording_prefix(int64_t step) { return fmt::format("step-{:08}-", step); }

SafetensorsWriter recording_file(const Recording& of, const ParameterArena& arena,
                                 std::span<float> g, std::span<float> u) {
  RecordedJson tensors = RecordedJson::array();
  for (const Parameter& p : arena.parameters()) {
    RecordedJson shape = RecordedJson::array();
    for (int i = 0; i < p.shape.rank(); ++i) shape.push_back(p.shape[i]);
    tensors.push_back({p.name, shape});
  }
  SafetensorsWriter file;
  file.add("g", {g.data(), {std::ssize(g)}, DType::f32, Device::cpu});
  file.add("u", {u.data(), {std::ssize(u)}, DType::f32, Device::cpu});
  file.metadata("step", std::to_string(of.step));
  file.metadata("rank", std::to_string(of.rank));
  file.metadata("ranks", std::to_string(of.ranks));
  file.metadata("sparsifier", of.sparsifier);
  file.metadata("density", fmt::format("{}", of.density));
  file.metadata("tensors", tensors.dump());
  return file;
}

Recording read_recording(const std::filesystem::path& path) {
  const SafetensorsReader file(path);
  Recording found{.path = path.string(),
                  .step = integer_in(file, "step", 0),
                  .rank = static_cast<int>(integer_in(file, "rank", 0)),
                  .ranks = static_cast<int>(integer_in(file, "ranks", 1))};
  check(found.rank < found.ranks, "[recording] {}: it is of rank {} of {}", found.path, found.rank,
        found.ranks);
  const auto& tensors = file.tensors();
  check(file.has("u") || file.has("g") || tensors.size() == 1,
        "[recording] {} has {} tensors, but neither u nor g", found.path, tensors.size());
  found.u = vector_in(file, file.has("u") ? "u" : file.has("g") ? "g" : tensors.begin()->first);
  const auto described = file.metadata().find("tensors");
  if (described == file.metadata().end()) {
    found.tensors.emplace_back("u", Shape{std::ssize(found.u)});
    return found;
  }
  try {
    found.tensors = tensors_in(described->second, found.u.size());
  } catch (const std::exception& error) {  // of JSON, or of the check of a tensor
    fail("[recording] {}: its list of tensors is damaged: {}", found.path, error.what());
  }
  return found;
}

}  // namespace tw
