// The settings that a step of SyncSgd uses, known before it runs.
#include "sparsify/sgd_plan.h"

#include <gtest/gtest.h>

#include "sparsify/local_sgd.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw {
namespace {

std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  const Settings settings = default_settings();
  for (const auto& [key, value] : settings.values()) keys.push_back(key);
  return keys;
}

TEST(ReadSettings, ReadsThoseThatTheOptimizerReads) {
  Context ctx;
  const auto comm = make_self_communicator();
  for (const Variant& variant : variants()) {
    const std::string& exchange = sparsifiers().find(variant.sparsifier).value.exchange;
    for (const Scope scope : {Scope::model, Scope::layer})
      for (const int64_t local_steps : {0, 2}) {
        if (local_steps > 0 && exchanges().find(exchange).value.updates_at_root) continue;
        const SgdConfig config{.sparsifier = variant.sparsifier,
                               .scope = scope,
                               .local_steps = local_steps,
                               .outer_momentum = 0.5};
        const Settings made = variant.settings, read = variant.settings;
        ParameterArena arena;
        arena.add({.name = "weight", .shape = {200, 100}});
        arena.add({.name = "bias", .shape = {7}, .decay = false});
        arena.allocate(ctx, 1);
        made.forget_reads();
        read.forget_reads();
        make_optimizer(ctx, *comm, arena, config, made);
        read_settings(ctx, config, read, arena);
        EXPECT_EQ(read.unread(all_keys()), made.unread(all_keys()))
            << variant.name << ", scope " << static_cast<int>(scope) << ", local steps "
            << local_steps;
      }
  }
}

}  // namespace
}  // namespace tw
