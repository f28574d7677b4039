#include "sparsify/exchanges/dense_sum.h"
#include "tests/support/error_text.h"
#include "tests/support/ranks/ranks.h"
#include "tests/support/ranks/sgd_rig.h"

namespace tw::test {
namespace {

Settings with_values(const char* values) {
  Settings settings = default_settings();
  settings.set("allreduce.values", values);
  return settings;
}

TEST(DenseSum, BeyondTheRangeOfFp16IsAFaultThatNamesTheSetting) {
  run_ranks(3, [](Context& ctx, Communicator& comm) {
    const auto sum_of = [&](const char* values, float each) {
      std::vector<float> data(100, 1.0f);
      data[7] = each;
      data.push_back(0);  // the status
      DenseSum(with_values(values))(ctx, comm, data);
      return data[7];
    };
    EXPECT_EQ(sum_of("fp16", 20000), 60000);
    EXPECT_EQ(sum_of("bf16", 32768), 98304);
    for (float each : {30000.0f, 70000.0f}) {  // the sum, and the value itself
      const std::string error = error_text<Fault>([&] { sum_of("fp16", each); });
      EXPECT_NE(error.find("element 7"), std::string::npos) << error;
      EXPECT_NE(error.find("allreduce.values=bf16"), std::string::npos) << error;
    }
  });
}

TEST(DenseSum, TheVendorCollectiveSendsF32Only) {
  Settings settings = with_values("bf16");
  settings.set("allreduce.collective", "vendor");
  for (const char* sparsifier : {"dense", "hierarchical"})
    EXPECT_NE(error_text<UserError>([&] {
                resolve_sparsifier({.sparsifier = sparsifier}, settings);
              }).find("vendor"),
              std::string::npos);
  // short tensors are summed densely
  EXPECT_NE(error_text<UserError>([&] {
              resolve_sparsifier({.sparsifier = "dgc"}, settings);
            }).find("vendor"),
            std::string::npos);
  // no other selection by layer has a dense sum, which would read the settings
  for (const Scope scope : {Scope::model, Scope::layer})
    EXPECT_EQ(resolve_sparsifier({.sparsifier = "topk", .scope = scope}, settings).exchange,
              "allgather");
}

}  // namespace
}  // namespace tw::test
