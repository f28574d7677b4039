// Measured costs of a step.
#include "apps/advise/measure.h"

#include <gtest/gtest.h>

#include "comm/transports.h"
#include "sparsify/sparsifier.h"

namespace tw::test {
namespace {

TEST(CostMeter, TheUpdateLeavesOutTheExchange) {
  AdviseConfig config;
  config.model = "mlp";
  config.batch_size = 1;
  config.precision = Precision::f32;
  config.settings = default_settings();
  // at this rank the products of the factors take many times as long as the update
  config.settings.set("powersgd.rank", "64");
  run_on_threads(1, [&](Communicator& comm) {
    Context ctx;
    Model model(config.model, {});
    const Costs costs = CostMeter(ctx, comm, model, config).round([](const std::string&) {});
    const StepCosts step = costs.step.at("powersgd");
    EXPECT_LT(step.update, step.exchange);
  });
}

}  // namespace
}  // namespace tw::test
