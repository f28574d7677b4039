#include "data/class_names.h"

#include "engine/core/error.h"
#include "tests/support/error_text.h"

namespace tw {
namespace {

using Names = std::vector<std::string>;

TEST(ClassNames, TheFirstDifferenceIsNamed) {
  const Names weights{"ant", "bee", "cat"};
  const auto says = [&](const Names& data) { return class_difference(data, weights); };
  EXPECT_EQ(says(weights), "");
  EXPECT_EQ(says({"ant", "bee", "cats"}), R"(class 2 is "cats" in the data, "cat" in the weights)");
  EXPECT_EQ(says({"ant", "cat"}),
            R"(class 1 is "cat" in the data, "bee" in the weights ("bee" is missing))");
  EXPECT_EQ(says({"ant", "bee"}), R"(class 2, "cat" in the weights, is missing)");
  EXPECT_EQ(says({"ant", "auk", "bee", "cat"}),
            R"(class 1 is "auk" in the data, "bee" in the weights ("auk" is additional))");
  EXPECT_EQ(says({"ant", "bee", "cat", "dog"}), R"(class 3, "dog", is not one of the weights)");
  EXPECT_EQ(says({"bee", "ant", "cat"}),
            R"(class 0 is "bee" in the data, "ant" in the weights (another order))");
}

// Unicode 15, chart U0080: e with acute is U+00E9, or U+0065 U+0301
const std::string kComposed = "caf\xc3\xa9", kDecomposed = "cafe\xcc\x81";

TEST(ClassNames, AnotherUnicodeFormIsNamed) {
  const std::string form = "(the same letters in another Unicode form, NFC or NFD)";
  EXPECT_TRUE(class_difference({kDecomposed}, {kComposed}).ends_with(form));
  // sorted by bytes, cafz is behind one form and before the other
  EXPECT_TRUE(class_difference({kDecomposed, "cafz"}, {"cafz", kComposed}).ends_with(form));
  EXPECT_TRUE(class_difference({"cafz", kComposed}, {kDecomposed, "cafz"}).ends_with(form));
  EXPECT_TRUE(class_difference({"caf\xc3\xa8"}, {kComposed}).ends_with("in the weights"));
}

TEST(ClassNames, TheMapFindsClassesByName) {
  const Names weights{"ant", "bee", "cat"};
  using Labels = std::vector<int32_t>;
  EXPECT_EQ(class_map("names", {"cat", "ant"}, weights), (Labels{2, 0}));
  EXPECT_EQ(class_map("wasp=bee", {"ant", "cat", "wasp"}, weights), (Labels{0, 2, 1}));
  EXPECT_EQ(class_map("wasp=bee,kitten=cat", {"kitten", "wasp"}, weights), (Labels{2, 1}));
  EXPECT_EQ(class_map("names", {kDecomposed, "cafz"}, {"cafz", kComposed}), (Labels{1, 0}));
}

TEST(ClassNames, TheErrorOfAMapNamesTheClass) {
  const Names data{"ant", "wasp"}, weights{"ant", "bee"};
  const auto error = [&](const std::string& map) {
    return test::error_text<UserError>([&] { class_map(map, data, weights); });
  };
  EXPECT_EQ(error("names"), "[options] class-map: no class of the weights is called \"wasp\"");
  EXPECT_EQ(error("wapp=bee"),
            "[options] class-map: no class of the data is called \"wapp\"; nearest is \"wasp\"");
  EXPECT_EQ(error("wasp=bees"),
            "[options] class-map: no class of the weights is called \"bees\"; nearest is \"bee\"");
  EXPECT_EQ(error("wasp"),
            "[options] class-map has \"wasp\"; expected names, or DATA=WEIGHTS for a class that "
            "has another name in the weights");
  EXPECT_EQ(error("wasp=ant"),
            "[options] class-map: the classes \"ant\" and \"wasp\" both become \"ant\"");
}

TEST(ClassNames, BytesThatAreNotUtf8AreWrittenOut) {
  EXPECT_EQ(as_utf8({"caf\xe9", kComposed, "\xc3", ""}),
            (Names{"caf\\xe9", kComposed, "\\xc3", ""}));
}

}  // namespace
}  // namespace tw
