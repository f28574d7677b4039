// Densities by tensor: what fits into backward.
#include "apps/advise/adapt.h"

#include "apps/advise/prediction.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// Gradients are ready after 1, 2 and 4 s of the 5 s of backward; an exchange takes 0.1 s, and
/// these seconds for a whole tensor.
std::vector<double> densities(double first, double second, double third) {
  std::vector<OverlappedExchange> exchanges;
  for (const auto& [ready, whole] : {std::pair(1.0, first), {2.0, second}, {4.0, third}})
    exchanges.push_back({ready, [=](double density) { return 0.1 + whole * density; }});
  std::vector<double> raised(3, 0.001);
  end_of(exchanges, 5, raised, true);
  return raised;
}

TEST(AdaptDensity, ExchangesFitIntoBackward) {
  using Densities = std::vector<double>;
  EXPECT_EQ(densities(0.1, 0.1, 0.1), (Densities{1, 1, 1})) << "a fast link";
  EXPECT_EQ(densities(1e6, 1e6, 1e6), (Densities{0.001, 0.001, 0.001})) << "a slow one";
  const Densities between = densities(3.6, 3.8, 7);  // 0.9 s, 1.9 s and 0.9 s fit
  EXPECT_NEAR(between[0], 0.25, 1e-12);
  EXPECT_NEAR(between[1], 0.5, 1e-12);
  EXPECT_NEAR(between[2], 0.128, 1e-12) << "0.12857 in three digits";
  // the first ends 0.1 s after the second is ready, which leaves this 1.8 s
  EXPECT_NEAR(densities(1000, 3.6, 0)[1], 0.5, 1e-12);
}

// Two ranks gather k entries in 2 k beta; backward takes 1 s for each tensor.
TEST(AdaptDensity, TrainTakesWhatAdvisePrints) {
  const TempFolder folder;
  const std::string profile = (folder / "profile.csv").string();
  std::ofstream(profile) << "part,parameters,seconds\nforward,0,1\nfc3.bias,10,1\n"
                            "fc3.weight,1280,1\nfc2.bias,128,1\nfc2.weight,32768,1\n"
                            "fc1.bias,256,1\nfc1.weight,786432,1\nbackward,0,1\n";
  const std::string file = (folder / "slow.json").string(), slow = "--link " + file;
  std::ofstream(file) << R"({"link": "266.6667kbit,0us", "slow": {"1": 2}})";
  const char* const late =
      "'fc3.bias=1,fc3.weight=1,fc2.bias=1,fc2.weight=0.254,fc1.bias=1,fc1.weight=0.0105'";
  for (const auto& [link, densities] :
       {std::pair("--alpha 1e-9 --beta 1", "''"),
        {"--alpha 1e-9 --beta 1e-9",
         "'fc3.bias=1,fc3.weight=1,fc2.bias=1,fc2.weight=1,fc1.bias=1,fc1.weight=1'"},
        {"--alpha 1e-9 --beta 6e-5", late},
        {slow.c_str(), late}}) {  // half the rate, twice the backward
    const std::string options = fmt::format(
        "--sparsifier topk --scope layer --overlap --bucket-mib 0 --density 0.01 --density-of {}",
        densities);
    const Ended ended =
        run_command(fmt::format("{}/advise --model mlp --simulate --select 0 --ranks 2 --density "
                                "0.01 --compute-profile {} --bucket-mib 0 --adapt-density topk {}",
                                TW_BIN, profile, link));
    EXPECT_TRUE(ended.says("use " + options + "\n")) << options << "\n" << ended.output;
    run_well(
        fmt::format("{} --model mlp --dataset shapes --workers 2 --dry-run {}", TW_TRAIN, options));
  }
}

}  // namespace
}  // namespace tw::test
