#include "apps/common/measurements.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include "apps/common/outputs.h"
#include "apps/common/version.h"
#include "engine/core/buffer.h"
#include "engine/core/copy.h"
#include "engine/core/rng.h"
#include "engine/core/stopwatch.h"
#include "engine/core/text.h"
#include "engine/io/file.h"
#include "engine/ops/vector.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/selector.h"

namespace tw {

namespace {

void write_batch(Context& ctx, const auto& values, const Tensor& to) {
  copy_bytes(ctx, std::as_bytes(std::span(values)), {static_cast<std::byte*>(to.data), to.bytes()});
}

}  // namespace

void fill_random_batch(Context& ctx, const Model& model, uint64_t seed) {
  const Philox philox(seed, Purpose::test);
  std::vector<uint8_t> pixels(static_cast<size_t>(model.images().numel()));
  for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(philox(i)[0]);
  std::vector<int32_t> labels(static_cast<size_t>(model.labels().numel()));
  for (size_t i = 0; i < labels.size(); ++i)
    labels[i] = static_cast<int32_t>(i % static_cast<size_t>(model.spec().classes));
  write_batch(ctx, pixels, model.images());
  write_batch(ctx, labels, model.labels());
}

LinkCost measure_additions(Context& ctx, Communicator& comm, size_t d, double density) {
  constexpr int rounds = 7, parts = 8;
  const size_t n = size_t{1} << 20;
  const Buffer x(ctx.device(), n * sizeof(float)), y(ctx.device(), n * sizeof(float));
  ops::fill(ctx, x.as<float>(), 1);
  const double adding =
      time_ranks(ctx, comm, rounds, [&](int64_t) { ops::add(ctx, x.as<float>(), y.as<float>()); });

  // entries spread over the vector, as selected ones are; other ranks have other indices
  const size_t k = std::min(d, entries_to_keep(density, d));
  std::vector<float> values(k, 1);
  std::vector<std::vector<uint32_t>> indices(parts);
  std::vector<SparseView> views;
  for (size_t part = 0; part < parts; ++part) {
    for (size_t i = 0; i < k; ++i)
      indices[part].push_back(static_cast<uint32_t>((i * (d / k)) + part % (d / k)));
    views.push_back({indices[part], values});
  }
  const Buffer sum(ctx.device(), d * sizeof(float));
  const auto summing = [&](size_t some) {
    return time_ranks(ctx, comm, rounds, [&](int64_t) {
      sparse_sum(ctx, std::span(views).first(some), sum.as<float>());
    });
  };
  const double all = summing(parts), one = summing(1);
  return {.gamma = adding / static_cast<double>(n),
          .merge = std::max(0.0, all - one) / static_cast<double>((parts - 1) * k)};
}

namespace {

struct Row {
  std::string part;
  size_t parameters;
  double seconds;
};

Row parse_row(const std::string& line, const std::string& where) {
  const std::vector<std::string> cells = split(line, ',');
  Row row{};
  const auto read = [](const std::string& cell, auto& value) {
    const auto number = number_in<std::remove_reference_t<decltype(value)>>(cell);
    value = number.value_or(0);
    return number.has_value();
  };
  check(cells.size() >= 3 && read(cells[1], row.parameters) && read(cells[2], row.seconds) &&
            std::isfinite(row.seconds) && row.seconds >= 0,
        "[profile] {}: expected {}; got {}", where, kProfileColumns, line);
  row.part = cells[0];
  return row;
}

}  // namespace

void ComputeProfile::scale(double factor) {
  forward *= factor;
  backward *= factor;
  for (double& seconds : ready) seconds *= factor;
}

ComputeProfile time_passes(Context& ctx, Model& model, uint64_t step) {
  const std::deque<Parameter>& parameters = model.arena().parameters();
  ComputeProfile profile;
  profile.ready.resize(parameters.size());
  Stopwatch clock;
  const PassArgs pass{.ctx = ctx, .step = step, .on_gradient_ready = [&](const Parameter& p) {
                        ctx.synchronize();
                        const auto at =
                            std::ranges::lower_bound(parameters, p.offset, {}, &Parameter::offset);
                        profile.ready[static_cast<size_t>(at - parameters.begin())] = clock.total();
                      }};
  model.forward(pass);
  ctx.synchronize();
  profile.forward = clock.total();
  model.backward(pass);
  ctx.synchronize();
  profile.backward = clock.total() - profile.forward;
  for (double& seconds : profile.ready) seconds -= profile.forward;
  return profile;
}

ComputeProfile median_profile(const std::vector<ComputeProfile>& profiles) {
  const auto over = [&](const auto& value) {
    std::vector<double> values;
    values.reserve(profiles.size());
    for (const ComputeProfile& profile : profiles) values.push_back(value(profile));
    return median(values);
  };
  ComputeProfile result{.forward = over([](const ComputeProfile& p) { return p.forward; }),
                        .backward = over([](const ComputeProfile& p) { return p.backward; })};
  for (size_t i = 0; i < profiles.front().ready.size(); ++i)
    result.ready.push_back(over([i](const ComputeProfile& p) { return p.ready[i]; }));
  return result;
}

void write_profile(const std::string& path, const ParameterArena& arena,
                   const ComputeProfile& profile) {
  std::vector<size_t> order(arena.parameters().size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t i) { return profile.ready[i]; });
  GrowingFile file = result_table(path, kProfileColumns);
  std::ostringstream out;
  const std::string from = provenance_cells() + "\n";
  out << fmt::format("forward,0,{:.9g}", profile.forward) << from;
  double before = 0;
  for (const size_t i : order) {
    const Parameter& parameter = arena.parameters()[i];
    out << fmt::format("{},{},{:.9g}", parameter.name, parameter.length(),
                       std::max(0.0, profile.ready[i] - before))
        << from;
    before = profile.ready[i];
  }
  out << fmt::format("backward,0,{:.9g}", std::max(0.0, profile.backward - before)) << from;
  file.write(out.str());
}

ComputeProfile read_profile(const std::string& path, const ParameterArena& arena) {
  std::ifstream in(path);
  check(in.is_open(), "[profile] cannot read {}", path);
  std::string line;
  check(std::getline(in, line) && (line + ",").starts_with(std::string(kProfileColumns) + ","),
        "[profile] {}: expected the columns {}", path, kProfileColumns);
  const std::deque<Parameter>& parameters = arena.parameters();
  ComputeProfile profile;
  profile.ready.assign(parameters.size(), -1);
  double now = 0;
  std::set<std::string> seen;
  for (int number = 2; std::getline(in, line); ++number) {
    if (line.empty()) continue;
    const Row row = parse_row(line, fmt::format("{}, line {}", path, number));
    check(seen.insert(row.part).second, "[profile] {}, line {}: a second row of {}", path, number,
          row.part);
    if (row.part == "forward") {
      profile.forward = row.seconds;
      continue;
    }
    now += row.seconds;
    if (row.part == "backward") continue;
    const auto at = std::ranges::find(parameters, row.part, &Parameter::name);
    check(at != parameters.end(), "[profile] {}, line {}: the model has no parameter {}", path,
          number, row.part);
    check(at->length() == row.parameters,
          "[profile] {}, line {}: {} has {} elements; in the model it has {}", path, number,
          row.part, row.parameters, at->length());
    profile.ready[static_cast<size_t>(at - parameters.begin())] = now;
  }
  profile.backward = now;
  for (size_t i = 0; i < parameters.size(); ++i)
    check(profile.ready[i] >= 0, "[profile] {} lacks the parameter {}", path, parameters[i].name);
  for (const char* part : {"forward", "backward"})
    check(seen.contains(part), "[profile] {} lacks the row {}", path, part);
  check(profile.seconds() > 0, "[profile] {}: all seconds are 0", path);
  return profile;
}

}  // namespace tw
