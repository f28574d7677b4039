// The files to which a console writes its lines.
#include "apps/common/console.h"

#include <gtest/gtest.h>

#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

TEST(Console, ALogBeginsWithTheLinesSoFar) {
  const TempFolder folder;
  const std::string first = (folder / "first").string(), last = (folder / "last").string(),
                    late = (folder / "late").string();
  Console console(Console::Output::logs);
  console.log_to(first);
  console.line("one");
  console.log_to(last, Console::Log::last);
  console.line("two");
  EXPECT_EQ(read_text(first), "one\ntwo\n");
  EXPECT_EQ(read_text(last), "one\ntwo\n");
  console.log_to(late);
  EXPECT_EQ(read_text(late), "");  // lines are not kept for it
}

TEST(Console, WithoutOutputWritesNothing) {
  const TempFolder folder;
  const std::string log = (folder / "log").string();
  Console console(Console::Output::none);
  console.log_to(log);
  console.line("one");
  EXPECT_EQ(read_text(log), "");
}

TEST(Console, WithoutATerminalWritesALineOfProgressAfterAPause) {
  const auto printed = [](std::chrono::seconds pause) {
    testing::internal::CaptureStdout();
    Console console(Console::Output::all, pause);
    console.line("one");
    for (int step : {1, 2})
      console.progress([&](int columns) { return fmt::format("step {} {}", step, columns > 60); });
    return testing::internal::GetCapturedStdout();
  };
  EXPECT_EQ(printed(std::chrono::seconds(0)), "one\nstep 1 true\nstep 2 true\n");
  EXPECT_EQ(printed(std::chrono::minutes(1)), "one\n");
}

TEST(Wrap, BreaksBeforeTheWordThatDoesNotFit) {
  EXPECT_EQ(wrap("  --lr=0.1  the rate of a step\n\n  --x  none\n", 22, 12),
            "  --lr=0.1  the rate\n            of a step\n\n  --x  none\n");
  EXPECT_EQ(wrap("one two", SIZE_MAX, 4), "one two");
  EXPECT_EQ(wrap("a two", 5, 0), "a two");
  EXPECT_EQ(wrap("", 5, 0), "");
}

TEST(Wrap, KeepsAWordThatIsLongerThanALine) {
  EXPECT_EQ(wrap("a incomprehensible word", 6, 2), "a incomprehensible\n  word");
  EXPECT_EQ(wrap("incomprehensible", 6, 2), "incomprehensible");
}

}  // namespace
}  // namespace tw::test
