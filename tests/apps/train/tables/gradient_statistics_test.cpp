// The recorded distribution of the gradients of a run.
#include "apps/train/tables/gradient_statistics.h"

#include "apps/common/distributions.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// The numbers of every row after the header.
std::vector<std::vector<double>> rows_of(const std::filesystem::path& path) {
  std::vector<std::vector<double>> rows;
  const std::vector<std::string> lines = split(text_of(path), '\n');
  for (size_t i = 1; i < lines.size(); ++i) {
    rows.emplace_back();
    for (const std::string& cell : split(lines[i], ',')) rows.back().push_back(std::stod(cell));
  }
  return rows;
}

TEST(GradientStatistics, MatchTheoryForANormalVector) {
  const TempFolder folder;
  Context ctx;
  GradientStatistics statistics(ctx, folder.path(), 0, true);
  std::vector<float> g(200'000), e(g.size());
  fill_random(ctx, distributions().at("gaussian"), 1, g);
  for (size_t i = 0; i < g.size(); ++i) e[i] = g[i] + 0.5f;  // u: mean 1/2, deviation 2
  const std::vector<float> before(e);
  statistics.add(ctx, g, e, 0.01);
  statistics.write(1);
  EXPECT_EQ(e, before);
  for (float& x : e) x = 0;
  statistics.add(ctx, g, e, 0.1);
  statistics.add(ctx, g, {}, 0.1);  // without a residual: the same
  statistics.write(2);

  const auto rows = rows_of(folder / "distributions.csv");
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_NEAR(rows[0][2], 0.5, 0.02);
  EXPECT_NEAR(rows[0][3], 2, 0.01);
  EXPECT_NEAR(rows[0][4], 3, 0.05);
  EXPECT_EQ(rows[1][1], 2);
  EXPECT_NEAR(rows[1][5], left_of_gaussian(0.1), 0.003);
  EXPECT_NEAR(rows[1][6], left_of_random(0.1), 0.005);
  EXPECT_NEAR(rows[1][7], bell_bound(0.1), 1e-6);

  // every entry in a bin, bins ascending, as many entries below as above zero
  double counted = 0, negative = 0, last = -INFINITY;
  for (const auto& row : rows_of(folder / "histograms.csv")) {
    EXPECT_LT(row[1], row[2]);
    if (row[0] != 2) continue;
    EXPECT_LE(last, row[1]);
    last = row[2];
    counted += row[3];
    negative += row[2] <= 0 ? row[3] : 0;
  }
  EXPECT_EQ(counted, 400'000);
  EXPECT_NEAR(negative / counted, 0.5, 0.01);
}

TEST(GradientStatistics, CountTheResidualAlone) {
  const TempFolder folder;
  Context ctx;
  const std::vector<float> g{100, 0, -5, 1}, e{0.5f, 3, -3, 0.5f};
  {
    GradientStatistics statistics(ctx, folder.path(), 0, true);
    statistics.add(ctx, g, e, 0.25);
    const Histogram u = statistics.write(1);
    EXPECT_EQ(u.greatest, 104);                                  // the bin of 100.5
    statistics.add(ctx, g, std::vector<float>(g.size()), 0.25);  // of the first step: not counted
    statistics.add(ctx, g, e, 0.25);
    statistics.write(2);
  }
  const auto rows = rows_of(folder / "residual_histograms.csv");
  const std::vector<std::vector<double>> one{
      {1, -3.25, -3, 1}, {1, 0.5, 0.5625, 2}, {1, 3, 3.25, 1}};
  ASSERT_EQ(rows.size(), 2 * one.size());  // an epoch starts from zero
  for (size_t i = 0; i < one.size(); ++i) EXPECT_EQ(rows[i], one[i]);
  GradientStatistics resumed(ctx, folder.path(), 1, true);
  EXPECT_EQ(rows_of(folder / "residual_histograms.csv"), one);
  const TempFolder dense;
  GradientStatistics without(ctx, dense.path(), 0, false);
  without.add(ctx, g, {}, 0.25);
  without.write(1);
  EXPECT_TRUE(std::filesystem::exists(dense / "histograms.csv"));
  EXPECT_FALSE(std::filesystem::exists(dense / "residual_histograms.csv"));
}

TEST(GradientStatistics, SkipZeroAndNonFiniteVectorsAndContinueAfterResume) {
  const TempFolder folder;
  Context ctx;
  {
    GradientStatistics statistics(ctx, folder.path(), 0, true);
    std::vector<float> u(100);
    statistics.add(ctx, u, {}, 0.1);
    u[3] = NAN;
    statistics.add(ctx, u, {}, 0.1);
    statistics.write(1);
    u[3] = 1;
    for (int64_t epoch : {2, 3}) {
      statistics.add(ctx, u, {}, 1.0);
      statistics.write(epoch);
    }
  }
  EXPECT_EQ(rows_of(folder / "distributions.csv").size(), 2u);
  EXPECT_EQ(rows_of(folder / "distributions.csv")[0][5], 0);  // density 1 leaves nothing
  GradientStatistics resumed(ctx, folder.path(), 2, true);
  EXPECT_EQ(rows_of(folder / "distributions.csv").size(), 1u);
  EXPECT_EQ(rows_of(folder / "histograms.csv").size(), 2u);
}

}  // namespace
}  // namespace tw::test
