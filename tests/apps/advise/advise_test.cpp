// The program advise, called from the command line.
#include <fstream>

#include "tests/support/program.h"

namespace tw::test {
namespace {

Ended advise(const std::string& arguments) {
  return run_command(fmt::format("{}/advise {}", TW_BIN, arguments));
}

constexpr const char* kSimulated =
    "--simulate --alpha 0.000436 --beta 3.6e-8 --compute 0.5 --select 0.01 --parameters 26214400 ";

TEST(Advise, PredictsFromGivenCosts) {
  const Ended ended = advise(std::string(kSimulated) + "--ranks 4,8,65536");
  EXPECT_EQ(ended.code, 0) << ended.output;
  for (const char* text :
       {"dense ring", "dense linear_pipeline", "gtopk", "65536", "scaling efficiency",
        "break-even Gbit/s", "gaussiank: prediction for 26214 entries", "use --sparsifier"})
    EXPECT_TRUE(ended.says(text)) << text << " is missing in\n" << ended.output;
  EXPECT_TRUE(ended.says("2.158")) << "0.5 s + dense ring at 8 ranks\n" << ended.output;
}

TEST(Advise, WritesATable) {
  const TempFolder folder;
  const std::string file = (folder / "advice.csv").string();
  const Ended ended = advise(kSimulated + fmt::format("--ranks 4,8 --csv {}", file));
  EXPECT_EQ(ended.code, 0) << ended.output;
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  EXPECT_EQ(line,
            "sparsifier,collective,ranks,iteration_seconds,exchange_seconds,efficiency,"
            "break_even_gbit");
  size_t dense = 0;
  while (std::getline(in, line)) dense += line.starts_with("dense,ring,");
  EXPECT_EQ(dense, 2u);
}

TEST(Advise, MeasuresRanksOnAnEmulatedLink) {
  const Ended ended = advise(
      "--model mlp --batch-size 4 --workers 2 --link 1Gbit,0.4ms --steps 1 --ranks 2,4 "
      "--precision f32");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("2 ranks")) << ended.output;
  EXPECT_TRUE(ended.says("use --sparsifier")) << ended.output;
}

TEST(Advise, UserErrorsAreOneLineAndExitCode2) {
  for (const char* arguments :
       {"--simulate", "--simulate --compute 1", "--simulate --compute 1 --alpha 1e-4",
        "--simulate --compute 1 --link 1Gbit", "--ranks 0", "--ranks 65537", "--modle x",
        "--model resnet21", "--parameters 10", "--select 1", "--density 0",
        "--simulate --compute 1 --link 1Gbit,1ms --workers 2",
        "--simulate --compute 1 --link 1Gbit,1ms --csv /dev/null/x", "extra"}) {
    const Ended ended = advise(arguments);
    EXPECT_EQ(ended.code, 2) << arguments << "\n" << ended.output;
    EXPECT_TRUE(ended.says("error: ")) << arguments << "\n" << ended.output;
    EXPECT_TRUE(ended.output.find("error: ") + 1 > 0 &&
                ended.output.find('\n', ended.output.find("error: ")) + 1 == ended.output.size())
        << arguments << "\n"
        << ended.output;
  }
}

TEST(Advise, HelpIsGrouped) {
  const Ended ended = advise("--help");
  EXPECT_EQ(ended.code, 0);
  for (const char* text : {"Model", "Link", "Machine", "Output", "--simulate", "--csv"})
    EXPECT_TRUE(ended.says(text)) << text;
}

TEST(Advise, AnOldKeyOfASettingPrintsOneLine) {
  const Ended ended = advise(std::string(kSimulated) + "--ranks 4 --set dgc.clip=0.4");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("note: setting dgc.clip is now called momentum_correction.clip\n"))
      << ended.output;
}

}  // namespace
}  // namespace tw::test
