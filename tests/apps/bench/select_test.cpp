// `bench select`: the cost of a selection.
#include "engine/io/safetensors.h"
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

TEST(BenchSelect, TimesEverySelectorOnTheVectorOfAFile) {
  const TempFolder folder;
  std::vector<float> u(1000, 0.0f);  // fewer entries than k that are not zero
  for (size_t i = 0; i < 5; ++i) u[100 * i] = 1.0f + static_cast<float>(i);
  SafetensorsWriter writer;
  writer.add("u", {u.data(), {1000}, DType::f32, Device::cpu});
  writer.add("g", {u.data(), {10}, DType::f32, Device::cpu});
  const std::string file = (folder / "u.safetensors").string();
  writer.write(file);
  const std::string csv = (folder / "select.csv").string();
  const Ended ended = bench_select(
      fmt::format("--from {} --tensor u --density 0.01 --iterations 1 --csv {}", file, csv));
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("d 1000  density 0.01  k 10")) << ended.output;
  const std::string table = text_of(csv);
  for (const std::string& name : selectors().names())
    EXPECT_NE(table.find(fmt::format("\ncpu,file,1000,0.01,{},", name)), std::string::npos) << name;
  for (const auto& [arguments, expected] :
       {std::pair{"--from {} --tensor v", "has no tensor \"v\""},
        {"--from {}", "has 2 tensors; choose one with --tensor: g, u"},
        {"--from {} --tensor u --d 5", "it excludes d and distribution"},
        {"--tensor u", "tensor needs from"}})
    expect_end(
        fmt::format("{}/bench select {}", TW_BIN, fmt::format(fmt::runtime(arguments), file)), 2,
        expected);
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
