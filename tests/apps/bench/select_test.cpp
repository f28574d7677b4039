// `bench select`: the cost of a selection.
#include "sparsify/selector.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

Ended bench_select(const std::string& arguments) {
  return run_command(fmt::format("{}/bench select {}", TW_BIN, arguments));
}

TEST(BenchSelect, TimesEverySelector) {
  const TempFolder folder;
  const std::string file = (folder / "select.csv").string();
  const Ended ended = bench_select(
      fmt::format("--d 1000 --density 0.01 --distribution gaussian --iterations 1 --csv {}", file));
  EXPECT_EQ(ended.code, 0) << ended.output;
  const std::string table = text_of(file);
  EXPECT_TRUE(
      table.starts_with("device,distribution,d,density,selector,seconds,best_seconds,gb_s,of_add,"
                        "nnz_over_k,thinwire,"))
      << table;
  for (const std::string& name : selectors().names())
    EXPECT_NE(table.find(fmt::format("\ncpu,gaussian,1000,0.01,{},", name)), std::string::npos)
        << name << " is missing in\n"
        << table;
  EXPECT_EQ(table.find(",-,"), std::string::npos) << table;  // a missing number is an empty cell
}

TEST(BenchSelect, UserErrorsAreOneLineAndExitCode2) {
  for (const char* arguments : {"--d 0", "--density 0", "--distribution normal",
                                "--csv /dev/null/x", "--elements 10", "extra"}) {
    const Ended ended = bench_select(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << "\n" << ended.output;
    EXPECT_EQ(ended.lines(), 1u) << arguments << "\n" << ended.output;
  }
}

}  // namespace
}  // namespace tw::test
