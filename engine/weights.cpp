#include "engine/weights.h"

#include <algorithm>
#include <deque>

#include "engine/error.h"
#include "engine/hash.h"

namespace tw {

namespace {

/// Position of every element of the exported tensor in the stored one.
struct Mapping {
  Shape exported;
  std::vector<size_t> stored_index;
};

Mapping mapping(const Parameter& p) {
  Mapping map{p.shape, {}};
  map.stored_index.reserve(p.length());
  if (p.layout == Layout::conv_ohwi) {
    const int64_t o = p.shape[0], h = p.shape[1], w = p.shape[2], i = p.shape[3];
    map.exported = {o, i, h, w};
    for (int64_t a = 0; a < o; ++a)
      for (int64_t b = 0; b < i; ++b)
        for (int64_t c = 0; c < h * w; ++c)
          map.stored_index.push_back(static_cast<size_t>((a * h * w + c) * i + b));
  } else if (p.layout == Layout::linear_nhwc) {
    const int64_t pixels = p.flattened[0] * p.flattened[1], channels = p.flattened[2];
    check<std::logic_error>(pixels * channels == p.shape[1],
                            "[weights] {}: {} behind a flatten of {}", p.name, p.shape,
                            p.flattened);
    for (int64_t row = 0; row < p.shape[0]; ++row)
      for (int64_t b = 0; b < channels; ++b)
        for (int64_t c = 0; c < pixels; ++c)
          map.stored_index.push_back(static_cast<size_t>((row * pixels + c) * channels + b));
  } else {
    for (size_t i = 0; i < p.length(); ++i) map.stored_index.push_back(i);
  }
  return map;
}

}  // namespace

ExportedTensor export_parameter(const Parameter& p, std::span<const float> stored) {
  const Mapping map = mapping(p);
  ExportedTensor result{{}, map.exported};
  result.values.reserve(p.length());
  for (const size_t i : map.stored_index) result.values.push_back(stored[i]);
  return result;
}

void import_parameter(const Parameter& p, const Tensor& exported, std::span<float> stored) {
  const Mapping map = mapping(p);
  check(exported.shape == map.exported && exported.dtype == DType::f32,
        "[weights] {} has shape {} of {}; the model wants {} of f32", p.name, exported.shape,
        name(exported.dtype), map.exported);
  const std::span<const float> values = exported.as<float>();
  for (size_t i = 0; i < values.size(); ++i) stored[map.stored_index[i]] = values[i];
}

void save_weights(const std::filesystem::path& path, const ParameterArena& arena,
                  const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  std::deque<ExportedTensor> exported;  // the writer refers to them
  const auto add = [&](const Parameter& p, const Tensor& value) {
    writer.add(p.name, exported.emplace_back(export_parameter(p, value.as<float>())).tensor());
  };
  for (const Parameter& p : arena.parameters()) add(p, arena.value(p));
  for (const Parameter& p : arena.statistics()) add(p, arena.statistic(p));
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  writer.write(path);
}

void load_weights(const SafetensorsReader& file, ParameterArena& arena) {
  const std::string place = fmt::format("[weights] {}", file.path().string());
  std::vector<std::string> known;
  for (const auto* list : {&arena.parameters(), &arena.statistics()}) {
    for (const Parameter& p : *list) {
      known.push_back(p.name);
      check(file.has(p.name), "{}: tensor {} is missing", place, p.name);
      const Shape expected = mapping(p).exported;
      const Tensor& found = file.tensor(p.name);
      check(found.shape == expected && found.dtype == DType::f32,
            "{}: tensor {} has shape {} of {}; the model wants {} of f32", place, p.name,
            found.shape, name(found.dtype), expected);
    }
  }
  const auto check_known = [&](const std::string& found) {
    const bool counter = found.ends_with("num_batches_tracked");  // torch's, without meaning here
    check(counter || std::ranges::find(known, found) != known.end(),
          "{}: tensor {} does not belong to this model", place, found);
  };
  for (const auto& [found, tensor] : file.tensors()) check_known(found);
  for (const auto& [found, dtype] : file.unreadable()) check_known(found);
  for (const Parameter& p : arena.parameters())
    import_parameter(p, file.tensor(p.name), arena.value(p).as<float>());
  for (const Parameter& p : arena.statistics())
    import_parameter(p, file.tensor(p.name), arena.statistic(p).as<float>());
}

uint64_t weights_hash(const ParameterArena& arena) {
  return Hash().add(arena.values()).add(arena.statistic_values()).value();
}

}  // namespace tw
