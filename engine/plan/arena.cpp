#include "engine/plan/arena.h"

#include <fnmatch.h>

#include <algorithm>

#include "engine/core/hash.h"
#include "engine/core/rng.h"

namespace tw {

const Parameter& ParameterArena::add_to(std::deque<Parameter>& list, size_t& size,
                                        Parameter parameter) {
  const auto same_name = [&](const Parameter& p) { return p.name == parameter.name; };
  const bool taken =
      std::ranges::any_of(parameters_, same_name) || std::ranges::any_of(statistics_, same_name);
  check<std::logic_error>(!taken, "[arena] two parameters are called {}", parameter.name);
  parameter.offset = size;
  size += parameter.length();
  return list.emplace_back(std::move(parameter));
}

const Parameter& ParameterArena::add(Parameter parameter) {
  return add_to(parameters_, size_, std::move(parameter));
}

void ParameterArena::add(const std::string& name, std::span<const int64_t> extents) {
  check(std::ranges::count(parameters_, name, &Parameter::name) == 0,
        "[tensors] two tensors are called {}", name);
  std::vector<int64_t> shape;
  for (size_t room = kMostIndexed - size_; const int64_t extent : extents) {
    check(extent > 0 && static_cast<size_t>(extent) <= room, "[tensors] {}: an extent is {}", name,
          extent);
    room /= static_cast<size_t>(extent);
    std::ssize(shape) < Shape::kMaxRank ? shape.emplace_back(extent) : shape.back() *= extent;
  }
  if (shape.empty()) shape.push_back(1);
  add({.name = name, .shape = Shape(shape)});
}

const Parameter& ParameterArena::add_statistic(Parameter parameter) {
  return add_to(statistics_, statistics_size_, std::move(parameter));
}

void ParameterArena::decay_all() {
  for (Parameter& p : parameters_) p.decay = true;
}

namespace {

/// Philox id = number of the parameter, index = element / 4: any thread could draw any element.
void initialise(const Parameter& p, uint64_t number, uint64_t seed, std::span<float> values) {
  switch (p.init) {
    case Init::zeros:
      std::ranges::fill(values, 0.0f);
      return;
    case Init::ones:
      std::ranges::fill(values, 1.0f);
      return;
    case Init::normal:
      break;
  }
  check<std::logic_error>(p.deviation > 0, "[arena] {} has no deviation", p.name);
  const Philox philox(seed, Purpose::init);
  for (size_t i = 0; i < values.size(); i += 4) {
    const Philox::Block bits = philox(number, static_cast<uint32_t>(i / 4));
    const auto [a, b] = normal(bits[0], bits[1]);
    const auto [c, d] = normal(bits[2], bits[3]);
    const std::array<float, 4> drawn{a, b, c, d};
    for (size_t j = 0; j < 4 && i + j < values.size(); ++j) values[i + j] = p.deviation * drawn[j];
  }
}

}  // namespace

size_t ParameterArena::freeze(const std::string& pattern) {
  size_t matches = 0;
  for (Parameter& p : parameters_) {
    if (::fnmatch(pattern.c_str(), p.name.c_str(), 0) != 0 && !p.name.starts_with(pattern + "."))
      continue;
    p.frozen = true;
    p.decay = false;
    ++matches;
  }
  return matches;
}

void ParameterArena::allocate(Context& ctx, std::optional<uint64_t> seed) {
  ctx_ = ctx.device() == Device::cpu ? nullptr : &ctx;
  values_ = Buffer(ctx.device(), size_ * sizeof(float));
  gradients_ = Buffer(ctx.device(), (size_ + 1) * sizeof(float));
  statistic_values_ = Buffer(ctx.device(), statistics_size_ * sizeof(float));
  if (!seed) return;
  HostFloats values = host_values(), statistics = host_statistics();
  uint64_t number = 0;
  for (const Parameter& p : parameters_)
    initialise(p, number++, *seed, values.span().subspan(p.offset, p.length()));
  for (const Parameter& p : statistics_)
    initialise(p, number++, *seed, statistics.span().subspan(p.offset, p.length()));
  values.write();
  statistics.write();
}

Tensor ParameterArena::value(const Parameter& p) const {
  return values_.tensor(p.shape, DType::f32, p.offset * sizeof(float));
}
Tensor ParameterArena::gradient(const Parameter& p) const {
  return gradients_.tensor(p.shape, DType::f32, p.offset * sizeof(float));
}
Tensor ParameterArena::statistic(const Parameter& p) const {
  return statistic_values_.tensor(p.shape, DType::f32, p.offset * sizeof(float));
}

uint64_t ParameterArena::layout_hash() const {
  Hash hash;
  for (const auto* list : {&parameters_, &statistics_}) {
    for (const Parameter& p : *list) hash.add(p.name).add(p.shape.str());
    hash.add(";");
  }
  return hash.value();
}

const Parameter& ParameterArena::at(size_t index) const {
  check<std::logic_error>(index < size_, "[arena] element {} of {}", index, size_);
  const auto next = std::ranges::upper_bound(parameters_, index, {}, &Parameter::offset);
  return *std::prev(next);
}

void ParameterArena::fail_nonfinite(int rank, size_t index, float value, uint64_t step,
                                    uint64_t steps) const {
  const Parameter& parameter = at(index);
  const std::string when = steps > 1 ? fmt::format("steps {} to {}", step + 1 - steps, step)
                                     : fmt::format("step {}", step);
  // the sign of a NaN says nothing
  fail<CollectiveFault>(
      "[train] rank {}: gradient of {} is {} at element {} ({}); a lower learning rate may help",
      rank, parameter.name, std::isnan(value) ? std::abs(value) : value, index - parameter.offset,
      when);
}

}  // namespace tw
