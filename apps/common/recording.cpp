#include "apps/common/recording.h"

#include <nlohmann/json.hpp>

#include "apps/common/vector_file.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/io/json.h"

namespace tw {

namespace {

using RecordedJson = nlohmann::json;

/// The integer in the metadata under `key`; `otherwise` when there is none.
int64_t integer_in(const SafetensorsReader& file, const char* key, int64_t otherwise) {
  const auto found = file.metadata().find(key);
  if (found == file.metadata().end()) return otherwise;
  const std::string& text = found->second;
  const int64_t value = number_in<int64_t>(text).value_or(-1);
  check(value >= 0 && value <= INT32_MAX,
        "[recording] {}: its {} is \"{}\"; expected a number from 0", file.path().string(), key,
        text);
  return value;
}

}  // namespace

ParameterArena Recording::arena() const {
  ParameterArena declared;
  for (const auto& [name, extents] : tensors) declared.add(name, extents);
  return declared;
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
    found.tensors = {{"u", {std::ssize(found.u)}}};
    return found;
  }
  try {
    for (const RecordedJson& tensor : parse_json<RecordedJson>(described->second, "JSON")) {
      auto& [name, extents] = found.tensors.emplace_back(tensor.at(0), std::vector<int64_t>());
      for (const RecordedJson& extent : tensor.at(1)) extents.push_back(integer_of(extent));
    }
    const size_t d = found.arena().size();
    check(d == found.u.size(), "they have {} elements; the vector has {}", d, found.u.size());
  } catch (const std::exception& error) {  // of JSON, or of the check of a tensor
    fail("[recording] {}: its list of tensors is damaged: {}", found.path, error.what());
  }
  return found;
}

}  // namespace tw
