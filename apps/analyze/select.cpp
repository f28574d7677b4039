#include <fmt/format.h>

#include <algorithm>

#include "apps/analyze/subcommands.h"
#include "apps/common/distributions.h"
#include "apps/common/npy.h"
#include "apps/common/resolve.h"
#include "apps/common/vector_file.h"
#include "engine/core/error.h"
#include "sparsify/selector.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

struct SelectOptions {
  std::string input, tensor, output, selector = kTopk, index_type = "int64";
  double density = kDensity;
  int64_t threads = 1, seed = 1, step = 0;
  Settings settings = default_settings();
};

void write_indices(const SelectOptions& options, std::span<const uint32_t> indices) {
  if (options.index_type == "uint32") return write_npy(options.output, indices);
  write_npy(options.output, std::vector<int64_t>(indices.begin(), indices.end()));
}

void report(const SelectOptions& options, const SelectInfo& info, const SparseVector& out, size_t d,
            size_t k, double left) {
  const double asked = static_cast<double>(k) / static_cast<double>(d);
  const double sent = static_cast<double>(out.count) / static_cast<double>(d);
  float least = out.count > 0 ? INFINITY : 0;
  for (float x : out.value_span()) least = std::min(least, std::abs(x));
  fmt::print("u           {}: {} elements\n", options.input, d);
  fmt::print("selector    {}, density {}, k {}\n", options.selector, options.density, k);
  fmt::print("count       {} (count/k {:.3f})\n", out.count,
             static_cast<double>(out.count) / static_cast<double>(k));
  fmt::print("threshold   {:g}; smallest selected magnitude {:g}\n", info.threshold, least);
  fmt::print("residual    {:.6f} of ||u||^2\n", left);
  fmt::print("bounds      {:.6f} = 1 - k/d    {:.6f} = (1 - k/d)^2\n", left_of_random(asked),
             bell_bound(asked));
  if (out.count != k)
    fmt::print("            {:.6f} and {:.6f} with k = count\n", left_of_random(sent),
               bell_bound(sent));
}

void run_select(const SelectOptions& options) {
  check_npy(options.output);
  Context ctx(Device::cpu, static_cast<int>(options.threads));
  const auto selector =
      selectors()
          .find(options.selector)
          .value(ctx, options.settings, {.seed = static_cast<uint64_t>(options.seed)});
  const std::vector<float> u = read_vector(options.input, options.tensor);

  std::vector<float> e(u.size());
  SparseVector out;
  const size_t k = std::min(entries_to_keep(options.density, u.size()), u.size());
  const SelectStep step{.g = u,
                        .e = e,
                        .k = k,
                        .density = options.density,
                        .step = static_cast<uint64_t>(options.step)};
  const SelectInfo info =
      options.density < 1 ? selector->select(ctx, step, out) : select_all(ctx, step, out);
  check(info.nonfinite == SIZE_MAX, "[analyze] {}: element {} is {}", options.input, info.nonfinite,
        info.nonfinite_value);

  std::vector<float> whole(u);
  std::vector<Moments> blocks;
  const Moments measure = add_and_moments(ctx, {}, whole, blocks);
  report(options, info, out, u.size(), k, residual_fraction(ctx, measure, e, blocks));
  if (options.output.empty()) return;
  write_indices(options, out.index_span());
  fmt::print("indices     {} ({})\n", options.output, options.index_type);
}

}  // namespace

Subcommand analyze_select() {
  auto [command, options] =
      subcommand("select", "runs a selector on a vector from a file", run_select);
  OptionTable& t = command.table;
  constexpr double kMost = 1e18;
  t.group("Files");
  t.add("input", options->input, "the vector: .npy (float32, C order) or safetensors",
        {.required = true});
  t.add("tensor", options->tensor, "name of the tensor in a safetensors file with several");
  t.add("output", options->output, "write the selected indices, ascending, to this .npy file");
  t.add("index-type", options->index_type, "type of the indices in --output",
        {.choices = {"int64", "uint32"}});
  t.group("Selection");
  t.add("selector", options->selector, "selector (see train --list)",
        {.suggestions = selectors().names()});
  t.add("density", options->density, "share of the elements to select",
        {.least = 1e-12, .most = 1});
  t.add("seed", options->seed, "seed of random selectors", {.most = kMost});
  t.add("step", options->step, "step number, for random selectors", {.most = kMost});
  t.add_settings(options->settings);
  t.group("Machine");
  t.add("threads-per-rank", options->threads, "CPU threads", {.least = 1, .most = 1024});
  return command;
}

}  // namespace tw
