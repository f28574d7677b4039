// Link descriptions, and the busy times of a port.

#include "comm/link/link.h"

#include <gtest/gtest.h>

#include "comm/link/port.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using test::error_text;

TEST(LinkSpec, ParsesRateAndLatency) {
  const LinkSpec link = parse_link("1Gbit,0.4ms", 4);
  EXPECT_DOUBLE_EQ(link.bits_per_second, 1e9);
  EXPECT_DOUBLE_EQ(link.latency, 4e-4);
  EXPECT_EQ(link.ranks_per_node, 4);
  EXPECT_DOUBLE_EQ(link.seconds(125), 4e-4 + 1e-6);
  EXPECT_DOUBLE_EQ(parse_link("100Mbit,50us").bits_per_second, 1e8);
  EXPECT_DOUBLE_EQ(parse_link("56kbit,1s").bits_per_second, 56e3);
  EXPECT_DOUBLE_EQ(parse_link("2.5e3bit,0s").bits_per_second, 2500);
  EXPECT_DOUBLE_EQ(parse_link("2.5e3bit,50us").latency, 5e-5);
}

TEST(LinkSpec, ParseErrorsNameTheWrongPart) {
  const auto text = [](const char* link) {
    return error_text<UserError>([&] { parse_link(link); });
  };
  EXPECT_EQ(text("1Gbit"), "[link] link is \"1Gbit\"; expected RATE,LATENCY as in 1Gbit,0.4ms");
  for (const char* link : {"1,1ms", "Gbit,1ms", "0Gbit,1ms", "-1Gbit,1ms", "1Gb,1ms", ",1ms",
                           "nanGbit,1ms", "infGbit,1ms", "1 Gbit,1ms"})
    EXPECT_TRUE(text(link).starts_with("[link] rate is \"")) << link << ": " << text(link);
  for (const char* link : {"1Gbit,", "1Gbit,1", "1Gbit,-1ms", "1Gbit,1min", "1Gbit,1ms,"})
    EXPECT_TRUE(text(link).starts_with("[link] latency is \"")) << link << ": " << text(link);
  EXPECT_EQ(error_text<UserError>([] { parse_link("1Gbit,1ms", 0); }),
            "[link] ranks-per-node is 0; expected at least 1");
}

TEST(Port, MessagesQueueInOrder) {
  Port port;
  EXPECT_EQ(port.book(1, 2), 1);
  EXPECT_EQ(port.book(1, 2), 3);
  EXPECT_EQ(port.book(10, 1), 10);
  EXPECT_EQ(port.book(10.5, 1), 11);
}

TEST(Port, AMessageFillsAGapThatIsLongEnough) {
  Port port;
  EXPECT_EQ(port.book(10, 1), 10);
  EXPECT_EQ(port.book(0, 2), 0);
  EXPECT_EQ(port.book(1, 9), 11);
  EXPECT_EQ(port.book(1, 8), 2);
  EXPECT_EQ(port.book(0, 1), 20);
}

TEST(Port, AFullPortForgetsOnlyTheOldestGaps) {
  Port port;
  for (int i = 0; i < 200; ++i) EXPECT_EQ(port.book(2 * i, 1), 2 * i);
  EXPECT_EQ(port.book(397, 1), 397);  // between the last two
  EXPECT_GT(port.book(1, 1), 200);    // the first gap is no longer known
}

}  // namespace
}  // namespace tw
