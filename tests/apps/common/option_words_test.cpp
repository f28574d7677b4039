// Options that take a word in place of a number, numbers in quotes, and flags of one letter.
#include <nlohmann/json.hpp>

#include "apps/common/options.h"
#include "apps/common/resolve.h"
#include "engine/core/error.h"
#include "tests/support/arguments.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

struct WithWords {
  std::optional<int64_t> every = 1;
  std::optional<double> warmup;
  std::optional<std::vector<double>> densities;
  std::optional<Device> device;
  int64_t workers = 0, d = 1;
  double lr = 0.1;
  bool fast = false;
  OptionTable table;

  WithWords() {
    table.group("Run");
    table.add("every", every, "epochs between validations", {.most = 100, .none = "never"});
    table.add("warmup", warmup, "epochs", {.none = "auto"});
    table.add("densities", densities, "one per epoch",
              {.most = 1, .excludes_least = true, .none = "auto", .empty_list = "none"});
    table.add("lr", lr, "learning rate");
    table.add("d", d, "elements");
    table.add("workers", workers, "ranks");
    table.add("fast", fast, "fast");
    table.add("device", device, "where to compute", {.none = "auto"});
  }
  void parse(const std::vector<std::string>& flags) {
    Arguments arguments(flags);
    table.parse_and_set(arguments.count(), arguments.values(), "example");
  }
  std::string error(const std::vector<std::string>& flags) {
    return error_text<UserError>([&] { parse(flags); });
  }
  std::string json_error(const char* text) {
    return error_text<UserError>([&] { table.set_json(Json::parse(text), "[config] f"); });
  }
};

TEST(OptionWords, EmptyAnOptionalValueOrAList) {
  WithWords e;
  e.parse({"--every", "never", "--densities", "none", "--warmup=3", "--device", "cuda"});
  EXPECT_EQ(e.every, std::nullopt);
  EXPECT_EQ(e.densities, std::vector<double>{});
  EXPECT_EQ(e.warmup, 3);
  EXPECT_EQ(e.device, Device::cuda);
  e.parse({"--every=5", "--densities=auto", "--warmup", "auto", "--device=auto"});
  EXPECT_EQ(e.every, 5);
  EXPECT_EQ(e.densities, std::nullopt);
  EXPECT_EQ(e.warmup, std::nullopt);
  EXPECT_EQ(e.device, std::nullopt);
  EXPECT_TRUE(e.table.is_set("warmup"));
}

TEST(OptionWords, StandForNoValueInJson) {
  WithWords e, again;
  e.parse({"--every", "never", "--device", "cpu"});
  EXPECT_EQ(e.table.json()["every"], "never");
  EXPECT_EQ(e.table.json()["densities"], "auto");
  EXPECT_EQ(e.table.json()["device"], "cpu");
  again.table.set_json(e.table.json(), "[config]");
  EXPECT_EQ(again.table.json(), e.table.json());
  e.parse({"--densities", "none"});
  EXPECT_EQ(e.table.json()["densities"], Json::array());
  EXPECT_EQ(e.json_error(R"({"every": null})"),
            "[config] f: every is null; expected never, or an integer");
}

TEST(OptionWords, AreNamedByTheErrorOfAnotherWord) {
  WithWords e;
  EXPECT_EQ(e.error({"--every", "nevr"}), "[options] every is nevr; expected never, or an integer");
  EXPECT_EQ(e.error({"--densities", "off"}),
            "[options] densities is off; expected auto, none, or a list of numbers, like 1,2,3");
  EXPECT_EQ(e.error({"--device", "gpu"}),
            "[options] device is gpu; expected one of: auto, cpu, cuda");
  EXPECT_EQ(e.error({"--every", "-1"}), "[options] every is -1; expected 0 to 100");
}

TEST(OptionsInQuotes, AreNamedWithTheirQuotes) {
  WithWords e;
  EXPECT_EQ(e.json_error(R"({"lr": "0.01"})"),
            "[config] f: lr is \"0.01\" in quotes; expected 0.01");
  EXPECT_EQ(e.json_error(R"({"densities": "0.1,0.2"})"),
            "[config] f: densities is \"0.1,0.2\" in quotes; expected [0.1,0.2]");
  EXPECT_EQ(e.json_error(R"({"fast": "true"})"),
            "[config] f: fast is \"true\" in quotes; expected true");
  EXPECT_EQ(e.json_error(R"({"lr": "high"})"), "[config] f: lr is high; expected a number");
}

TEST(OptionLetters, AreNotTakenForShortNames) {
  WithWords e;
  for (const char* flag : {"-n", "-np", "--np", "--ranks"})
    EXPECT_EQ(
        e.error({flag, "4"}),
        fmt::format("[options] unknown flag {}; --workers N starts N ranks as threads, mpirun "
                    "-n N as processes",
                    flag));
  EXPECT_EQ(e.error({"-x"}), "[options] unknown flag -x; --help lists all");
  EXPECT_EQ(e.error({"-d", "1"}), "[options] unknown flag -d; nearest is --d; --help lists all");
  EXPECT_EQ(e.error({"--lrr", "1"}),
            "[options] unknown flag --lrr; nearest is --lr; --help lists all");
}

TEST(OptionWords, AnArgumentThatIsAValueOfAFlagNamesTheFlag) {
  OptionTable table;
  std::string model, config;
  table.add("model", model, "network", {.suggestions = {"mlp", "vgg16"}});
  table.add("config", config, "file");
  table.add("data-dir", config, "folder");
  const auto error = [&](const char* argument) {
    Arguments arguments({argument});
    return error_text<UserError>(
        [&] { table.parse_and_set(arguments.count(), arguments.values(), "example"); });
  };
  const std::string start = "[options] unexpected argument ", mean = "; did you mean --";
  EXPECT_EQ(error("vgg16"), start + "\"vgg16\"" + mean + "model vgg16");
  EXPECT_EQ(error("a.json"), start + "\"a.json\"" + mean + "config a.json");
  EXPECT_EQ(error("/"), start + "\"/\"" + mean + "data-dir /");
  EXPECT_EQ(error("vgg"), start + "\"vgg\"");
}

}  // namespace
}  // namespace tw::test
