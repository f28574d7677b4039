// The subcommands of bench.
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(Bench, AnUnknownSubcommandNamesTheNearest) {
  const Ended ended = run_command(fmt::format("{}/bench selct", TW_BIN));
  EXPECT_EQ(ended.code, 2);
  EXPECT_EQ(ended.lines(), 1u) << ended.output;
  EXPECT_TRUE(ended.says("nearest is \"select\"")) << ended.output;
}

}  // namespace
}  // namespace tw::test
