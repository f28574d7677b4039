// The reducers of thinwire.h.
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "apps/library/handles.h"
#include "comm/collectives/collectives.h"
#include "comm/collectives/same_lines.h"
#include "engine/io/json.h"
#include "engine/io/safetensors.h"
#include "sparsify/gradient_mean.h"

namespace tw {

namespace {

/// The options of a reducer, beside the settings of --set: those of `train` by the same names.
const std::vector<Setting>& reducer_options() {
  static const std::vector<Setting> options = {
      {.key = "sparsifier", .value = kDense, .help = "synchronous SGD algorithm"},
      {.key = "selector", .value = "", .help = "replaces the sparsifier's selector"},
      {.key = "exchange", .value = "", .help = "replaces the sparsifier's exchange"},
      {.key = "scope",
       .value = "auto",
       .help = "select from the whole gradient or from each tensor",
       .choices = {"auto", "model", "layer"}},
      {.key = "momentum_correction",
       .value = "auto",
       .help = "momentum before the selection",
       .choices = {"auto", "on", "off"}},
      {.key = "momentum",
       .value = "0.9",
       .help = "of a momentum before the selection",
       .least = 0,
       .most = 1},
      {.key = "nesterov", .value = "false", .help = "likewise"},
      {.key = "bucket_mib",
       .value = fmt::format("{:.1f}", static_cast<double>(SgdConfig{}.bucket_bytes) / 0x1p20),
       .help = "least size of a bucket",
       .least = 0,
       .most = 1e6},
      {.key = "no_error_feedback", .value = "false", .help = "drop entries that were not sent"},
      {.key = "residual_decay",
       .value = "1.0",
       .help = "factor of the residual",
       .least = 0,
       .most = 1},
      {.key = "density_of", .value = "", .help = "densities of tensors, as layer1.*=0.01,fc=1"},
      {.key = "ef21", .value = "false", .help = "EF21 in place of error feedback"},
      {.key = "seed", .value = "1", .help = "of random draws", .least = 0, .most = 4294967295},
      {.key = "threads_per_rank", .value = "1", .help = "CPU threads", .least = 1, .most = 4096},
  };
  return options;
}
/// The key of an option among the settings.
std::string key_of(std::string_view option) { return fmt::format("reducer.{}", option); }

std::string text_of(const nlohmann::json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

struct Chosen {
  Settings own, settings;  ///< of reducer_options(); of --set
};

/// All options and settings, with those of the JSON object set.
Chosen read_options(const char* options) {
  Chosen chosen{.own = {}, .settings = default_settings()};
  chosen.own.declare("reducer", reducer_options());
  if (options == nullptr) return chosen;
  const auto json = parse_json<nlohmann::json>(options, "[thinwire] the options");
  check(json.is_object(), "[thinwire] the options are not a JSON object: {}", options);
  std::vector<std::string> names{"set"};
  for (const Setting& option : reducer_options()) names.push_back(option.key);
  for (const auto& [key, value] : json.items()) {
    check(std::ranges::find(names, key) != names.end(), "[thinwire] unknown option \"{}\"{}", key,
          nearest_hint(key, names));
    if (key != "set") {
      chosen.own.set(key_of(key), text_of(value));
      continue;
    }
    check(value.is_object(), "[thinwire] the option \"set\" is not a JSON object");
    for (const auto& [setting, text] : value.items()) chosen.settings.set(setting, text_of(text));
  }
  return chosen;
}

/// The values that all ranks have.
std::map<std::string, std::string> common_options(const Chosen& chosen) {
  const auto& settings = chosen.settings.values();
  std::map<std::string, std::string> options(settings.begin(), settings.end());
  for (const Setting& option : reducer_options())
    if (option.key != "threads_per_rank")
      options.emplace(option.key, chosen.own.text(key_of(option.key)));
  return options;
}

SgdConfig config_of(const Settings& own, const Settings& settings) {
  SgdConfig config{.sparsifier = own.text(key_of("sparsifier")),
                   .momentum = own.number(key_of("momentum")),
                   .weight_decay = 0,
                   .nesterov = own.flag(key_of("nesterov")),
                   .error_feedback = !own.flag(key_of("no_error_feedback")),
                   .residual_decay = own.number(key_of("residual_decay")),
                   .ef21 = own.flag(key_of("ef21")),
                   .density_of = own.text(key_of("density_of")),
                   .selector = own.text(key_of("selector")),
                   .exchange = own.text(key_of("exchange")),
                   .bucket_bytes = static_cast<size_t>(own.number(key_of("bucket_mib")) * 0x1p20),
                   .seed = static_cast<uint64_t>(own.integer(key_of("seed")))};
  if (const std::string scope = own.text(key_of("scope")); scope != "auto")
    config.scope = scope == "layer" ? Scope::layer : Scope::model;
  if (const std::string text = own.text(key_of("momentum_correction")); text != "auto")
    config.momentum_before = text == "on";
  check(config.error_feedback || config.residual_decay == 1,
        "[thinwire] residual_decay has no effect with no_error_feedback");
  check(config.momentum > 0 || !config.nesterov, "[thinwire] nesterov needs a momentum above 0");
  check(config.momentum > 0 || !config.momentum_before.value_or(false),
        "[thinwire] momentum_correction needs a momentum above 0");
  const Sparsifier parts = resolve_sparsifier(config, settings);
  check(config.error_feedback || keeps_residual(parts),
        "[thinwire] no_error_feedback has no effect: {} keeps no residual", config.sparsifier);
  check(!own.was_set(key_of("bucket_mib")) || parts.scope == Scope::layer,
        "[thinwire] bucket_mib has no effect: the scope is not layer");
  // momentum after the mean is that of the caller's optimizer
  if (!parts.momentum_before) {
    for (const char* option : {"momentum", "nesterov"})
      check(!own.was_set(key_of(option)),
            "[thinwire] option \"{}\" acts only with a momentum before the selection; without one "
            "the optimizer that takes the mean has it",
            option);
    config.momentum = 0;
  }
  return config;
}

ParameterArena arena_of(Context& ctx, const thinwire_tensor* tensors, size_t count) {
  check(count > 0, "[thinwire] no tensors");
  need(tensors, "tensors");
  ParameterArena arena;
  for (const thinwire_tensor& tensor : std::span(tensors, count)) {
    need(tensor.name, "the name of a tensor");
    if (tensor.dimensions > 0) need(tensor.shape, "the shape of a tensor");
    arena.add(tensor.name, std::span(tensor.shape, tensor.dimensions));
  }
  arena.allocate(ctx, {});
  return arena;
}

/// UserError on all ranks if their tensors or options differ.
void check_same_ranks(Communicator& comm, const ParameterArena& arena,
                      const std::map<std::string, std::string>& options) {
  std::vector<std::string> lines;
  for (const Parameter& p : arena.parameters())
    lines.push_back(fmt::format("tensor {} is {} {}", lines.size(), p.name, p.shape));
  for (const auto& [key, value] : options) lines.push_back(fmt::format("{} is {}", key, value));
  check_same_setup(comm, lines);
}

Tensor flat_tensor(std::span<float> values) {
  return {values.data(), {static_cast<int64_t>(values.size())}, DType::f32, Device::cpu};
}

}  // namespace

}  // namespace tw

using namespace tw;  // NOLINT: this file defines functions outside of it

struct thinwire_reducer {
  thinwire_reducer(thinwire_group& of, const char* options, const thinwire_tensor* tensors,
                   size_t count)
      : group(of),
        chosen(read_options(options)),
        ctx(Device::cpu, static_cast<int>(chosen.own.integer(key_of("threads_per_rank")))) {
    ParameterArena arena = arena_of(ctx, tensors, count);
    if (group.link && group.link->topology().ranks_per_node > 1)  // of a file
      settings.set_default(kNodeSetting, std::to_string(group.link->topology().ranks_per_node));
    check_same_ranks(group.comm(), arena, common_options(chosen));
    config = config_of(chosen.own, chosen.settings);
    mean = std::make_unique<GradientMean>(ctx, group.comm(), std::move(arena), config, settings);
    const std::vector<std::string> unread = settings.unread({});
    check(unread.empty(), "[thinwire] {} has no effect: no part of this reducer reads it",
          fmt::join(unread, ", "));
    machines = gather(group.comm(), group.comm().machine());
    ++group.reducers;
  }
  ~thinwire_reducer() { --group.reducers; }

  /// All vectors and states of this rank.
  std::vector<NamedVector> vectors() {
    std::vector<NamedVector> all = mean->sgd().common_vectors();
    for (NamedVector& own : mean->sgd().own_vectors()) all.push_back(std::move(own));
    return all;
  }
  /// Whose state a block of bytes is.
  std::map<std::string, std::string> identity() const {
    std::map<std::string, std::string> identity = common_options(chosen);
    identity["rank"] = fmt::format("{} of {}", group.base.rank(), group.base.size());
    identity["hash of the tensors"] = fmt::format("{:016x}", mean->arena().layout_hash());
    return identity;
  }

  thinwire_group& group;
  Chosen chosen;
  Settings& settings = chosen.settings;
  SgdConfig config;
  Context ctx;
  std::unique_ptr<GradientMean> mean;
  std::vector<HostId> machines;  // by rank
};

int thinwire_reducer_create(thinwire_group* group, const char* options,
                            const thinwire_tensor* tensors, size_t count,
                            thinwire_reducer** reducer) {
  return guarded([&] {
    need(group, "group");
    need(reducer, "reducer");
    *reducer = new thinwire_reducer(*group, options, tensors, count);
  });
}

int thinwire_reducer_step(thinwire_reducer* reducer, const thinwire_step* step,
                          float* const* gradients, thinwire_report* report) {
  return guarded([&] {
    need(reducer, "reducer");
    need(step, "step");
    need(gradients, "gradients");
    check(step->density > 0 && step->density <= 1, "[thinwire] a density of {}", step->density);
    const auto& parameters = reducer->mean->arena().parameters();
    for (size_t i = 0; const Parameter& p : parameters)
      check(gradients[i++] != nullptr, "[thinwire] the gradient of {} is NULL", p.name);

    reducer->ctx.bind_thread();
    for (size_t i = 0; const Parameter& p : parameters)
      std::copy_n(gradients[i++], p.length(), p.in(reducer->mean->arena().gradients()).begin());
    const StepReport done = reducer->mean->run({.step = step->step,
                                                .density = step->density,
                                                .warmup = step->warmup != 0,
                                                .stop = step->stop != 0});
    for (size_t i = 0; const Parameter& p : parameters)
      std::ranges::copy(p.in(reducer->mean->arena().values()), gradients[i++]);
    if (report != nullptr)
      *report = {.bytes_sent = done.bytes_sent,
                 .entries = done.nnz,
                 .seconds_select = done.sec_select,
                 .seconds_exchange = done.sec_exchange,
                 .stop = done.stop};
  });
}

int thinwire_reducer_save(thinwire_reducer* reducer, void* state, size_t* bytes) {
  return guarded([&] {
    need(reducer, "reducer");
    need(bytes, "bytes");
    SafetensorsWriter file;
    for (const auto& [key, value] : reducer->identity()) file.metadata(key, value);
    std::vector<NamedVector> vectors = reducer->vectors();
    for (NamedVector& one : vectors) file.add(one.name, flat_tensor(one.values.span()));
    for (const NamedState& one : reducer->mean->sgd().states())
      file.add(
          one.name,
          {one.bytes.data(), {static_cast<int64_t>(one.bytes.size())}, DType::u8, Device::cpu});
    size_t length = 0;
    const auto visit = [&](std::byte* out) {
      length = 0;
      file.visit([&](std::span<const std::byte> part) {
        if (out != nullptr) std::ranges::copy(part, out + length);
        length += part.size();
      });
    };
    visit(nullptr);
    const size_t room = *bytes;
    *bytes = length;
    if (state == nullptr) return;
    check(room >= length, "[thinwire] room for {} bytes of state; {} are needed", room, length);
    visit(static_cast<std::byte*>(state));
  });
}

int thinwire_reducer_load(thinwire_reducer* reducer, const void* state, size_t bytes) {
  return guarded([&] {
    need(reducer, "reducer");
    need(state, "state");
    const auto* first = static_cast<const std::byte*>(state);
    const SafetensorsReader file("the state", std::vector<std::byte>(first, first + bytes));
    check(file.sealed(), "[thinwire] the state has no checksum");
    for (const auto& [key, value] : reducer->identity()) {
      const auto saved = file.metadata().find(key);
      const std::string then = saved == file.metadata().end() ? "" : saved->second;
      check(then == value, "[thinwire] {} is \"{}\" in the state, \"{}\" in this reducer", key,
            then, value);
    }
    // all of it is checked before any of it is taken
    std::vector<std::pair<std::span<std::byte>, std::span<const std::byte>>> copies;
    const auto take = [&](const std::string& name, std::span<std::byte> to) {
      const Tensor& tensor = file.tensor(name);
      const std::span from(static_cast<const std::byte*>(tensor.data), tensor.bytes());
      check(from.size() == to.size(), "[thinwire] {} of the state has {} bytes; expected {}", name,
            from.size(), to.size());
      copies.emplace_back(to, from);
    };
    std::vector<NamedVector> vectors = reducer->vectors();
    for (NamedVector& one : vectors) take(one.name, std::as_writable_bytes(one.values.span()));
    for (const NamedState& one : reducer->mean->sgd().states()) take(one.name, one.bytes);
    for (const auto& [to, from] : copies) std::ranges::copy(from, to.begin());
  });
}

int thinwire_reducer_bytes(const thinwire_reducer* reducer, double density, uint64_t* bytes) {
  return guarded([&] {
    need(reducer, "reducer");
    need(bytes, "bytes");
    check(density > 0 && density <= 1, "[thinwire] a density of {}", density);
    const SgdPlan plan(reducer->mean->arena(), reducer->config, reducer->settings,
                       reducer->machines);
    *bytes = plan.bytes_sent(reducer->group.base.size(), density);
  });
}

int thinwire_reducer_seconds(const thinwire_reducer* reducer, const char* link, double density,
                             double* seconds) {
  return guarded([&] {
    need(reducer, "reducer");
    need(link, "link");
    need(seconds, "seconds");
    check(density > 0 && density <= 1, "[thinwire] a density of {}", density);
    const SgdPlan plan(reducer->mean->arena(), reducer->config, reducer->settings,
                       reducer->machines);
    const int ranks = reducer->group.base.size();
    const Topology topology = parse_link(link);
    const LinkCost between = topology.cost(ranks);
    *seconds =
        plan.seconds(between, topology.ranks_per_node > 1 ? LinkCost{} : between, ranks, density);
  });
}

void thinwire_reducer_free(thinwire_reducer* reducer) {
  if (reducer == nullptr) return;
  thinwire_group* const group = &reducer->group;
  delete reducer;
  if (group->freed && group->reducers == 0) delete group;
}
