#include "engine/io/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <set>

#include "engine/core/error.h"
#include "engine/core/hash.h"

namespace tw {

Shape exported_shape(const Parameter& p) {
  if (p.layout != Layout::conv_ohwi) return p.shape;
  return {p.shape[0], p.shape[3], p.shape[1], p.shape[2]};
}

namespace {

/// Calls move(exported index, stored index) for every element: the stored rows are pixels x
/// channels, the exported ones channels x pixels.
template <class Move>
void for_each_element(const Parameter& p, const Move& move) {
  int64_t pixels = 1, channels = 1;
  if (p.layout == Layout::conv_ohwi) {
    pixels = p.shape[1] * p.shape[2], channels = p.shape[3];
  } else if (p.layout == Layout::linear_nhwc) {
    pixels = p.flattened[0] * p.flattened[1], channels = p.flattened[2];
    check<std::logic_error>(pixels * channels == p.shape[1],
                            "[weights] {}: shape {} after a flatten of {}", p.name, p.shape,
                            p.flattened);
  }
  const auto row = static_cast<size_t>(pixels * channels);
  size_t exported = 0;
  for (size_t first = 0; first < p.length(); first += row)
    for (size_t c = 0; c < static_cast<size_t>(channels); ++c)
      for (size_t i = 0; i < static_cast<size_t>(pixels); ++i)
        move(exported++, first + i * static_cast<size_t>(channels) + c);
}

}  // namespace

ExportedTensor export_parameter(const Parameter& p, std::span<const float> stored) {
  ExportedTensor result{std::vector<float>(p.length()), exported_shape(p)};
  for_each_element(p, [&](size_t out, size_t in) { result.values[out] = stored[in]; });
  return result;
}

void import_parameter(const Parameter& p, const Tensor& exported, std::span<float> stored) {
  const Shape expected = exported_shape(p);
  check(exported.shape == expected && exported.dtype == DType::f32,
        "[weights] {} has shape {} of {}; the model expects {} of f32", p.name, exported.shape,
        name(exported.dtype), expected);
  const std::span<const float> values = exported.as<float>();
  for_each_element(p, [&](size_t in, size_t out) { stored[out] = values[in]; });
}

void save_weights(const std::filesystem::path& path, const ParameterArena& arena,
                  const std::map<std::string, std::string>& metadata) {
  SafetensorsWriter writer;
  std::deque<ExportedTensor> exported;  // the writer refers to them
  const auto add = [&](const std::deque<Parameter>& list, std::span<const float> stored) {
    for (const Parameter& p : list)
      writer.add(p.name, exported.emplace_back(export_parameter(p, p.in(stored))).tensor());
  };
  add(arena.parameters(), arena.host_values().span());
  add(arena.statistics(), arena.host_statistics().span());
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  writer.write(path);
}

namespace {

std::vector<int64_t> sizes_of(const Shape& shape) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < shape.rank(); ++i) sizes.push_back(shape[i]);
  return sizes;
}

bool is_left_out(const std::string& name, const std::string& except) {
  return !except.empty() && name.starts_with(except);
}

/// What is wrong with a tensor of a file, which must be of f32 and have the shape of `p` and finite
/// elements, as a variance none below 0; empty: nothing.
std::string fault_of(const Tensor& found, const Parameter& p) {
  const Shape expected = exported_shape(p);
  if (found.shape != expected || found.dtype != DType::f32)
    return fmt::format("shape {} of {}; the model expects {} of f32{}", found.shape,
                       name(found.dtype), expected,
                       !axes_differ(found.shape, expected) ? ""
                       : expected.rank() == 2              ? ": it is transposed"
                                                           : ": its axes are in another order");
  const std::span<const float> values = found.as<float>();
  const bool variance = p.name.ends_with("running_var");
  const auto wrong = std::ranges::find_if(
      values, [&](float value) { return !std::isfinite(value) || (variance && value < 0); });
  if (wrong == values.end()) return "";
  return fmt::format("{} in element {}", *wrong, wrong - values.begin());
}

/// The differences between `file` and the arena, and impossible elements, one line each.
std::vector<std::string> misfits(const SafetensorsReader& file, const ParameterArena& arena,
                                 const std::string& except) {
  std::vector<std::string> problems;
  std::set<std::string> known;
  const auto& unreadable = file.unreadable();
  for (const auto* list : {&arena.parameters(), &arena.statistics()})
    for (const Parameter& p : *list) known.insert(p.name);
  // a prefix that only some names have is not dropped
  const auto prefixed = [&](const std::string& name) -> std::string {
    for (const auto& [found, tensor] : file.tensors())
      if (found.ends_with("." + name) && !known.contains(found))
        return fmt::format(", but the file has {}", found);
    return "";
  };
  for (const auto* list : {&arena.parameters(), &arena.statistics()}) {
    for (const Parameter& p : *list) {
      if (is_left_out(p.name, except)) continue;
      const auto found = file.tensors().find(p.name);
      if (const auto other = unreadable.find(p.name); other != unreadable.end())
        problems.push_back(fmt::format("tensor {} is of {}; the model expects {} of f32", p.name,
                                       other->second, exported_shape(p)));
      else if (found == file.tensors().end())
        problems.push_back(fmt::format("tensor {} is missing{}", p.name, prefixed(p.name)));
      else if (const std::string fault = fault_of(found->second, p); !fault.empty())
        problems.push_back(fmt::format("tensor {} has {}", p.name, fault));
    }
  }
  const auto check_known = [&](const std::string& found) {
    const bool counter = found.ends_with("num_batches_tracked");  // PyTorch's, not used here
    if (!counter && !known.contains(found) && !is_left_out(found, except))
      problems.push_back(fmt::format("tensor {} does not belong to this model", found));
  };
  for (const auto& [found, tensor] : file.tensors()) check_known(found);
  for (const auto& [found, dtype] : unreadable) check_known(found);
  return problems;
}

}  // namespace

std::string drop_prefix(SafetensorsReader& file, const ParameterArena& arena) {
  const std::string& first = arena.parameters().front().name;
  if (file.tensors().empty() || file.has(first)) return "";
  const std::string& any = file.tensors().begin()->first;
  for (size_t dot = any.find('.'); dot != std::string::npos; dot = any.find('.', dot + 1))
    if (const std::string prefix = any.substr(0, dot + 1); file.has(prefix + first))
      return file.drop_prefix(prefix) ? prefix : "";
  return "";
}

bool axes_differ(const Shape& a, const Shape& b) {
  return a != b && std::ranges::is_permutation(sizes_of(a), sizes_of(b));
}

void check_weights(const SafetensorsReader& file, const ParameterArena& arena,
                   const std::string& except) {
  std::vector<std::string> problems = misfits(file, arena, except);
  if (problems.empty()) return;
  constexpr size_t kShown = 3;
  const size_t all = problems.size();
  if (all > kShown) {
    problems.resize(kShown);
    problems.push_back(fmt::format("and {} more", all - kShown));
  }
  throw UserError(fmt::format("[weights] {}: {}", file.path().string(), fmt::join(problems, "; ")));
}

std::string head_prefix(const ParameterArena& arena) {
  const std::string& name = arena.parameters().back().name;
  return name.substr(0, name.rfind('.') + 1);
}

int64_t other_classes(const SafetensorsReader& file, const ParameterArena& arena) {
  const std::string head = head_prefix(arena);
  std::set<int64_t> theirs, ours;
  for (const Parameter& p : arena.parameters()) {
    if (!p.name.starts_with(head)) continue;
    const auto found = file.tensors().find(p.name);
    const std::vector<int64_t> expected = sizes_of(exported_shape(p)),
                               sizes = found == file.tensors().end()
                                           ? std::vector<int64_t>()
                                           : sizes_of(found->second.shape);
    if (sizes.empty() || sizes.size() != expected.size() ||
        !std::equal(sizes.begin() + 1, sizes.end(), expected.begin() + 1))
      return 0;
    theirs.insert(sizes[0]);
    ours.insert(expected[0]);
  }
  return theirs.size() == 1 && theirs != ours ? *theirs.begin() : 0;
}

void load_weights(const SafetensorsReader& file, ParameterArena& arena, const std::string& except) {
  check_weights(file, arena, except);
  HostFloats values = arena.host_values(), statistics = arena.host_statistics();
  for (const Parameter& p : arena.parameters())
    if (!is_left_out(p.name, except)) import_parameter(p, file.tensor(p.name), p.in(values.span()));
  for (const Parameter& p : arena.statistics())
    import_parameter(p, file.tensor(p.name), p.in(statistics.span()));
  values.write();
  statistics.write();
}

uint64_t weights_hash(const ParameterArena& arena) {
  return Hash().add(arena.host_values().span()).add(arena.host_statistics().span()).value();
}

}  // namespace tw
