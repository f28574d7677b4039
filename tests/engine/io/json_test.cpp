// JSON of user files: the checks beyond those of the library.
#include "engine/io/json.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

using Json = nlohmann::json;

std::string error(const std::string& text) {
  return error_text<UserError>([&] { parse_json<Json>(text, "[place] f"); });
}

std::string lists(size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

std::string objects(size_t depth) {
  std::string text = "1";
  for (size_t i = 0; i < depth; ++i) text = fmt::format(R"({{"a":{}}})", text);
  return text;
}

TEST(ParseJson, ReadsValidJson) {
  const std::string text = R"({"b": [1, 2.5, "x"], "a": {"c": null}})";
  EXPECT_EQ(parse_json<Json>(text, ""), Json::parse(text));
  EXPECT_EQ(parse_json<nlohmann::ordered_json>(text, "").dump(),
            R"({"b":[1,2.5,"x"],"a":{"c":null}})");
}

TEST(ParseJson, TheDepthIsBounded) {
  constexpr size_t kMost = kDeepestJson;
  EXPECT_EQ(parse_json<Json>(lists(kMost), "").dump(), lists(kMost));
  EXPECT_EQ(parse_json<Json>(objects(kMost), "").dump(), objects(kMost));
  for (const size_t depth : {kMost + 1, size_t{100000}})
    EXPECT_EQ(error(lists(depth)), "[place] f: nested deeper than 64 levels") << depth;
  EXPECT_EQ(error(objects(kMost + 1)), "[place] f: nested deeper than 64 levels");
  // siblings are not depth
  EXPECT_EQ(parse_json<Json>(fmt::format("[{},{}]", lists(1), lists(kMost - 1)), "").size(), 2u);
}

TEST(ParseJson, ARepeatedKeyIsRejected) {
  EXPECT_EQ(error(R"({"a": 1, "b": {}, "a": 2})"), R"([place] f: key "a" occurs twice)");
  EXPECT_EQ(error(R"([{"b": {"a": 1, "a": 1}}])"), R"([place] f: key "a" occurs twice)");
  EXPECT_EQ(parse_json<Json>(R"({"a": {"a": [{"a": 1}, {"a": 2}]}})", "").size(), 1u);
}

TEST(ParseJson, ErrorsAreOneShortLineWithThePosition) {
  EXPECT_TRUE(error("{\n  \"a\" 1}").starts_with("[place] f: line 2, column 7: "));
  EXPECT_EQ(error("1e999"), "[place] f: number overflow parsing '1e999'");
  for (const std::string& text :
       {std::string(), std::string("\"\n"), std::string("\xff"), std::string("{} {}"),
        fmt::format("[\"{:x<100000}", ""), fmt::format("{:9<100000}e999", "")}) {
    EXPECT_LT(error(text).size(), 300u);
    EXPECT_EQ(error(text).find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace tw::test
