// analyze compressors.
#include <cmath>
#include <map>
#include <sstream>

#include "apps/common/distributions.h"
#include "engine/core/error.h"
#include "engine/io/safetensors.h"
#include "sparsify/sparsifier.h"
#include "tests/apps/analyze/analyze_output.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using Metadata = std::map<std::string, std::string>;

/// Writes tensors of these vectors.
void put_vectors(const std::filesystem::path& path,
                 const std::map<std::string, std::vector<float>>& of,
                 const Metadata& metadata = {}) {
  auto vectors = of;  // a writer takes what may be written to
  SafetensorsWriter writer;
  for (auto& [name, values] : vectors)
    writer.add(name, {values.data(), {std::ssize(values)}, DType::f32, Device::cpu});
  for (const auto& [key, value] : metadata) writer.metadata(key, value);
  writer.write(path);
}

using Row = std::map<std::string, std::string>;

/// The rows of the table of `analyze compressors`.
std::vector<Row> compress(const TempFolder& folder, const std::string& line) {
  std::vector<std::string> words{"compressors", "--csv", (folder / "table.csv").string()};
  std::istringstream text(line);
  for (std::string word; text >> word;)
    words.push_back(word.starts_with('@') ? (folder / word.substr(1)).string() : word);
  analyze_output(words);
  return table_rows(folder / "table.csv");
}

double number(const Row& row, const std::string& column) { return std::stod(row.at(column)); }

/// Two ranks of four elements, of which each sends one: 4 of index 0, and 3 or 5 of index 1 or 0.
class CompressorsOfTwo : public testing::Test {
 protected:
  void write(std::vector<float> second) {
    const std::string tensors = R"([["a", [2]], ["b", [1, 1, 1, 1, 1, 2]]])";
    put_vectors(folder_ / "0", {{"g", {9, 9, 9, 9}}, {"u", {4, 0, 1, 0}}},
                {{"step", "7"}, {"rank", "0"}, {"ranks", "2"}, {"tensors", tensors}});
    put_vectors(folder_ / "1", {{"u", second}},
                {{"step", "7"}, {"rank", "1"}, {"ranks", "2"}, {"tensors", tensors}});
  }
  const TempFolder folder_;
};

TEST_F(CompressorsOfTwo, NumbersAreThoseWorkedOutByHand) {
  write({0, 3, 1, 0});
  const auto rows = compress(folder_, "@1 @0 --density 0.25 --sparsifiers topk,dense");
  ASSERT_EQ(rows.size(), 2u);
  const Row &topk = rows[0], &dense = rows[1];
  EXPECT_EQ(topk.at("step") + topk.at("sparsifier") + topk.at("d") + topk.at("ranks"), "7topk42");
  // the mean of u is (2, 1.5, 1, 0), and (2, 1.5, 0, 0) is sent
  EXPECT_NEAR(number(topk, "error"), 1 / std::sqrt(4 + 2.25 + 1), 1e-6);
  EXPECT_NEAR(number(topk, "contraction"), (1 / 17.0 + 1 / 10.0) / 2, 1e-6);
  EXPECT_EQ(number(topk, "bound_random"), 0.75);
  EXPECT_EQ(number(topk, "bound_bell"), 0.5625);
  EXPECT_EQ(number(topk, "k"), 1);
  EXPECT_EQ(number(topk, "nnz_over_k"), 1);
  EXPECT_EQ(number(topk, "overlap"), 1);
  EXPECT_GE(number(topk, "bytes"), 2 * 8);  // an index and a value of each rank
  EXPECT_EQ(dense.at("error"), "0");
  EXPECT_EQ(dense.at("density"), "1");
  for (const char* lacking : {"contraction", "bound_random", "bound_bell", "overlap"})
    EXPECT_EQ(dense.at(lacking), "") << lacking;
}

TEST_F(CompressorsOfTwo, RanksThatSendTheSameEntryOverlapByHalf) {
  write({5, 3, 1, 0});
  const auto rows = compress(folder_, "@0 @1 --density 0.25 --sparsifiers topk");
  EXPECT_EQ(number(rows.at(0), "overlap"), 0.5);
  // the mean of u is (4.5, 1.5, 1, 0), and (4.5, 0, 0, 0) is sent
  EXPECT_NEAR(number(rows[0], "error"), std::sqrt(3.25 / 23.5), 1e-6);
  // one rank of them: what it keeps is the error
  const auto alone = compress(folder_, "@1 --density 0.25 --sparsifiers topk");
  EXPECT_NEAR(number(alone.at(0), "error"), std::sqrt(10 / 35.0), 1e-6);
  EXPECT_NEAR(number(alone[0], "contraction"), 10 / 35.0, 1e-6);
}

TEST_F(CompressorsOfTwo, ASettingThatNoSparsifierReadsIsNamed) {
  write({0, 3, 1, 0});
  for (const char* chosen : {"topk", "gaussiank,topk"})
    EXPECT_EQ(analyze_output({"compressors", (folder_ / "0").string(), (folder_ / "1").string(),
                              "--sparsifiers", chosen, "--set", "gaussiank.refine=histogram"})
                      .find("--set gaussiank.refine has no effect: no sparsifier here reads it") ==
                  std::string::npos,
              chosen[0] == 'g')
        << chosen;
}

TEST(Compressors, RandomEntriesLeaveTheirShareAndAllDensitiesAndStepsHaveRows) {
  const TempFolder folder;
  std::vector<float> u(100'000);
  fill_by_name(Context(), "gaussian", 1, u);
  put_vectors(folder / "plain", {{"any name", u}});
  put_vectors(folder / "later", {{"g", u}}, {{"step", "2"}});
  const auto rows =
      compress(folder, "@plain @later --density 0.1,0.5 --sparsifiers randk --iterations 1");
  ASSERT_EQ(rows.size(), 4u);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].at("step"), i < 2 ? "0" : "2");
    const double density = i % 2 == 0 ? 0.1 : 0.5;
    EXPECT_EQ(number(rows[i], "density"), density);
    EXPECT_NEAR(number(rows[i], "contraction"), 1 - density, 0.01);
  }
}

TEST(Compressors, EverySparsifierHasARowOnAnyNumberOfRanks) {
  const TempFolder folder;
  for (int ranks = 1; ranks <= 3; ++ranks) {
    std::string files;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<float> u(1000);
      fill_by_name(Context(), "t3", static_cast<uint64_t>(rank), u);
      put_vectors(folder / std::to_string(rank), {{"u", u}},
                  {{"rank", std::to_string(rank)},
                   {"ranks", std::to_string(ranks)},
                   {"tensors", R"([["w", [30, 30]], ["b", [100]]])"}});
      files += fmt::format("@{} ", rank);
    }
    const auto rows = compress(folder, files + "--density 0.02 --iterations 1");
    ASSERT_EQ(rows.size(), sparsifiers().names().size());
    std::map<std::string, double> bytes;
    for (size_t i = 0; i < rows.size(); ++i) {
      bytes[rows[i].at("sparsifier")] = number(rows[i], "bytes");
      EXPECT_EQ(rows[i].at("sparsifier"), sparsifiers().names()[i]);
      EXPECT_GE(number(rows[i], "error"), 0) << rows[i].at("sparsifier");
      EXPECT_LE(number(rows[i], "error"), 1) << rows[i].at("sparsifier");
    }
    // without what it sends to measure the link
    EXPECT_LE(bytes.at("bsp"), 1.1 * bytes.at("dense"));
  }
}

TEST(Compressors, WrongFilesAreRefusedByName) {
  const TempFolder folder;
  const std::vector<float> u{1, 2, 3};
  const Metadata first{{"rank", "0"}, {"ranks", "2"}};
  put_vectors(folder / "first", {{"u", u}}, first);
  put_vectors(folder / "again", {{"u", u}}, first);
  put_vectors(folder / "of3", {{"u", u}}, {{"rank", "1"}, {"ranks", "3"}});
  put_vectors(folder / "other", {{"u", {1, 2}}}, {{"rank", "1"}, {"ranks", "2"}});
  put_vectors(folder / "beyond", {{"u", u}}, {{"rank", "2"}, {"ranks", "2"}});
  put_vectors(folder / "words", {{"u", u}}, {{"step", "two"}});
  put_vectors(folder / "none", {{"v", u}, {"w", u}});
  put_vectors(folder / "nan", {{"u", {1, NAN, 3}}});
  const auto with_tensors = [&](const char* name, const char* tensors) {
    put_vectors(folder / name, {{"u", u}}, {{"tensors", tensors}});
  };
  with_tensors("json", "[[");
  with_tensors("broken", R"([["a", [1.5, 2]]])");
  with_tensors("less", R"([["a", [2]]])");
  with_tensors("twice", R"([["a", [1]], ["a", [2]]])");
  with_tensors("zero", R"([["a", [0]], ["b", [3]]])");
  with_tensors("huge", R"([["a", [4294967296, 4294967296, 4294967296]]])");
  for (const auto& [files, expected] : {
           std::pair{"@first @again", "are both of rank 0 in step 0"},
           {"@first @of3", "is of 2 ranks, "},
           {"@first @other", "have other tensors"},
           {"@beyond", "it is of rank 2 of 2"},
           {"@words", "its step is \"two\""},
           {"@none", "has 2 tensors, but neither u nor g"},
           {"@nan", "element 1 is nan"},
           {"@json", "its list of tensors is damaged"},
           {"@broken", "its list of tensors is damaged"},
           {"@less", "they have 2 elements; the vector has 3"},
           {"@twice", "two tensors are called a"},
           {"@zero", "an extent is 0"},
           {"@huge", "an extent is 4294967296"},
           {"@missing", "missing"},
           {"@first --sparsifiers topk,topl", "nearest is \"topk\""},
       }) {
    const std::string text = error_text<UserError>([&] { compress(folder, files); });
    EXPECT_NE(text.find(expected), text.npos) << text;
    EXPECT_EQ(text.find('\n'), text.npos) << text;
  }
  expect_end(fmt::format("{}/analyze compressors {}", TW_BIN, (folder / "less").string()), 2,
             "error: [recording]");
}

}  // namespace
}  // namespace tw::test
