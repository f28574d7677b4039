// analyze select and analyze theory.
#include <cstring>
#include <iterator>
#include <sstream>

#include "apps/common/distributions.h"
#include "engine/core/instruction_set.h"
#include "engine/io/file.h"
#include "engine/io/safetensors.h"
#include "sparsify/selector.h"
#include "tests/apps/analyze/analyze_output.h"
#include "tests/support/error_text.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// The output of a command line.
std::string analyze(const std::string& line) {
  std::istringstream words(line);
  return analyze_output({std::istream_iterator<std::string>(words), {}});
}

std::vector<int64_t> indices_in(const std::filesystem::path& path) {
  const auto bytes = read_file(path);
  std::vector<int64_t> values((bytes.size() - 128) / sizeof(int64_t));
  std::memcpy(values.data(), bytes.data() + 128, bytes.size() - 128);
  return values;
}

/// A safetensors file with one or two tensors of a thousand normal entries.
std::vector<float> put(const std::filesystem::path& path, int tensors) {
  Context ctx;
  std::vector<float> u(1000);
  fill_random(ctx, distributions().at("gaussian"), 1, u);
  SafetensorsWriter writer;
  const Tensor tensor{u.data(), {10, 100}, DType::f32, Device::cpu};
  writer.add("first", tensor);
  if (tensors > 1) writer.add("second", tensor);
  writer.write(path);
  return u;
}

TEST(AnalyzeSelect, WritesIndicesAndReportsTheResidual) {
  const TempFolder folder;
  const auto u = put(folder / "u.safetensors", 1);
  const std::string text =
      analyze(fmt::format("select --input {} --density 0.01 --output {}",
                          (folder / "u.safetensors").string(), (folder / "i.npy").string()));
  const auto indices = indices_in(folder / "i.npy");
  ASSERT_EQ(indices.size(), 10u);
  double left = 0, whole = 0;
  for (float x : u) whole += double{x} * double{x};
  left = whole;
  for (int64_t i : indices) left -= double{u[i]} * double{u[i]};
  EXPECT_NE(text.find("count       10 (count/k 1.000)"), text.npos) << text;
  EXPECT_NE(text.find(fmt::format("residual    {:.6f}", left / whole)), text.npos) << text;
  EXPECT_NE(text.find("0.990000 = 1 - k/d    0.980100 = (1 - k/d)^2"), text.npos) << text;
}

TEST(AnalyzeSelect, RunsEverySelectorWithItsSettings) {
  const TempFolder folder;
  put(folder / "u.safetensors", 1);
  for (const char* selector : {"topk", "randk", "gaussiank", "dgc", "trimmed", "redsync"})
    for (double density : {0.02, 1.0})
      EXPECT_NE(analyze(fmt::format("select --input {} --density {} --selector {}",
                                    (folder / "u.safetensors").string(), density, selector))
                    .find("residual"),
                std::string::npos);
  const auto count = [&](const std::string& refine) {
    const std::string text = analyze(fmt::format(
        "select --input {} --density 0.01 --selector gaussiank --set gaussiank.refine={} --set "
        "randk.seed=shared",
        (folder / "u.safetensors").string(), refine));
    return text.substr(text.find("count"), 20);
  };
  EXPECT_NE(count("paper"), count("histogram"));
}

/// Whichever kernels are called, so the sums that thresholds come from have the same bits.
TEST(AnalyzeSelect, SendsTheSameEntriesUnderEveryInstructionSet) {
  const TempFolder folder;
  std::vector<float> u(100'003);
  const auto selected = [&](InstructionSet set, const std::string& selector) {
    const std::string to = (folder / fmt::format("{}.npy", name(set))).string();
    const Ended ended = run_command(fmt::format(
        "THINWIRE_CPU={} {}/analyze select --selector {} --set sidco.stages=3 --input {} "
        "--output {}",
        name(set), TW_BIN, selector, (folder / "u.safetensors").string(), to));
    EXPECT_EQ(ended.code, 0) << ended.output;
    return indices_in(to);
  };
  // one entry of the last one is larger than all others together
  for (const auto& [distribution, fewest] : {std::pair{"gaussian", 10u},
                                             {"laplace", 10u},
                                             {"t3", 10u},
                                             {"layers", 10u},
                                             {"spike", 0u}}) {
    fill_by_name(Context(), distribution, 1, u);
    SafetensorsWriter writer;
    writer.add("u", {u.data(), {std::ssize(u)}, DType::f32, Device::cpu});
    writer.write(folder / "u.safetensors");
    for (const auto& [selector, entry] : selectors().entries()) {
      const auto expected = selected(InstructionSet::baseline, selector);
      EXPECT_GT(expected.size(), fewest) << selector << ", " << distribution;
      for (int set = 1; set <= static_cast<int>(instruction_set()); ++set)
        EXPECT_EQ(selected(InstructionSet{set}, selector), expected)
            << selector << ", " << distribution << ", " << name(InstructionSet{set});
    }
  }
}

TEST(AnalyzeSelect, UserErrorsAreReported) {
  const TempFolder folder;
  const auto refused = [&](const std::string& line, const std::string& why) {
    const std::string text = error_text<UserError>([&] { analyze("select " + line); });
    EXPECT_NE(text.find(why), text.npos) << text;
  };
  put(folder / "two.safetensors", 2);
  const std::string two = (folder / "two.safetensors").string();
  refused("--input " + two, "has 2 tensors; choose one with --tensor: first, second");
  refused("--input " + two + " --tensor third", "third");
  refused("--input " + two + " --tensor first --selector topkk", "nearest is \"topk\"");
  refused("--input " + two + " --tensor first --set topk=1", "unknown setting");
  refused("--input " + (folder / "none.npy").string(), "none.npy");
  refused("--density 2 --input x", "[options] density is 2; expected 1e-12 to 1");
  refused("", "[options] --input is missing");

  std::vector<float> u(100, 1.0f);
  u[17] = NAN;
  SafetensorsWriter writer;
  writer.add("u", {u.data(), {100}, DType::f32, Device::cpu});
  writer.write(folder / "nan.safetensors");
  refused("--input " + (folder / "nan.safetensors").string(), "element 17 is nan");
}

TEST(Theory, ClosedFormsHaveTheirKnownValues) {
  const double densities[] = {0.001, 0.01, 0.1, 0.5};
  const double gaussian[] = {0.987304, 0.915508, 0.560714, 0.071326};
  const double laplace[] = {0.968234, 0.837910, 0.404647, 0.033313};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(left_of_gaussian(densities[i]), gaussian[i], 1e-6);
    EXPECT_NEAR(left_of_laplace(densities[i]), laplace[i], 1e-6);
    EXPECT_LE(left_of_uniform(densities[i]), bell_bound(densities[i]));
  }
  for (auto* left : {left_of_gaussian, left_of_laplace, left_of_uniform})
    EXPECT_NEAR(left(1), 0, 0);
}

TEST(AnalyzeTheory, MeasurementsMatchTheClosedForms) {
  const TempFolder folder;
  const std::string file = (folder / "theory.csv").string();
  std::istringstream lines(analyze("theory --d 200000 --density 0.01,0.5 --csv " + file));
  const std::string table = text_of(file);
  size_t rows = 0;
  for (std::string line; std::getline(lines, line);) {
    std::istringstream fields(line);
    std::string name, verdict;
    double rho, closed, top, random, random_measured, bound;
    if (!(fields >> name >> rho >> closed >> top >> random >> random_measured >> bound >> verdict))
      continue;
    ++rows;
    EXPECT_NEAR(closed, top, 0.01) << line;
    EXPECT_NEAR(random, random_measured, 0.02) << line;
    EXPECT_EQ(verdict, name == "constant" ? "violated" : "holds") << line;
    const std::string cells = fmt::format("\n{},{},{:.6f},{:.6f},{:.6f},{:.6f},{:.6f},", name, rho,
                                          closed, top, random, random_measured, bound);
    EXPECT_NE(table.find(cells), std::string::npos) << cells << " is missing in\n" << table;
  }
  EXPECT_EQ(rows, 8u);
}

}  // namespace
}  // namespace tw::test
