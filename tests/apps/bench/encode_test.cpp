// `bench encode`: the speed of the formats of messages.
#include "tests/support/program.h"

namespace tw::test {
namespace {

TEST(BenchEncode, TimesEveryFormatOfValues) {
  const TempFolder folder;
  const std::string file = (folder / "encode.csv").string();
  const Ended ended = run_command(
      fmt::format("{}/bench encode --entries 1280 --iterations 1 --csv {}", TW_BIN, file));
  EXPECT_EQ(ended.code, 0) << ended.output;
  const std::string table = text_of(file);
  // an index, b / 8 bytes and a scale for 128 values or for all
  for (const char* row :
       {"\nf32,1280,8.0000,,", "\nfp16,1280,6.0000,", "\nbf16,1280,6.0000,", "\nint8,1280,5.0312,",
        "\nint4,1280,4.5312,", "\nint2,1280,4.2812,", "\nsign,1280,4.1281,",
        // a byte or less and a scale for 256 values
        "\ndense int8,1280,1.0156,,", "\ndense int4,1280,0.5156,,", "\ndense sign,1280,0.1406,,"})
    EXPECT_NE(table.find(row), std::string::npos) << row << " is missing in\n" << table;
}

}  // namespace
}  // namespace tw::test
