// Names of collectives and their short aliases.

#include <gtest/gtest.h>

#include "comm/collectives/collectives.h"

namespace tw {
namespace {

constexpr std::pair<const char*, const char*> kShortNames[] = {{"be", "recursive_halving"},
                                                               {"lp", "linear_pipeline"},
                                                               {"mst", "binomial_tree"},
                                                               {"native", "vendor"}};

TEST(CollectiveNames, ShortNamesFindTheSameEntries) {
  for (const auto& [alias, name] : kShortNames) {
    EXPECT_EQ(broadcasts().find(alias).name, name);
    EXPECT_EQ(reduces().find(alias).name, name);
    EXPECT_EQ(allreduces().find(alias).name, name);
  }
}

TEST(CollectiveNames, ShortNamesAreAcceptedBeforeSettings) {
  Settings settings = collective_settings();
  settings.set_assignment("lp.block=8");
  EXPECT_EQ(settings.text("linear_pipeline.block"), "8");
}

}  // namespace
}  // namespace tw
