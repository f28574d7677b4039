// Options declared once: flags, JSON, help, and the errors of both.
#include "apps/common/options.h"

#include "engine/core/error.h"
#include "tests/support/arguments.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

/// A table with an option of every type.
struct Example {
  bool nesterov = false;
  int64_t batch_size = 32;
  double lr = 0.1;
  double free = 0;
  std::string model = "lenet", schedule = "cosine";
  std::vector<int64_t> milestones{81, 122};
  std::vector<double> densities{0.25};
  OptionTable table;

  Example() {
    table.add("Subcommunicator", "nesterov", nesterov, "Nesterov momentum");
    table.add("Subcommunicator", "batch-size", batch_size, "images per step");
    table.range(1, 1000);
    table.add("Subcommunicator", "lr", lr, "learning rate");
    table.range(0, 10);
    table.add("Subcommunicator", "free", free, "any number");
    table.add("Other", "model", model, "network");
    table.add("Other", "schedule", schedule, "how the rate falls");
    table.choices({"step", "cosine"});
    table.add("Other", "milestones", milestones, "epochs");
    table.range(0, 1000);
    table.add("Other", "densities", densities, "one an epoch");
    table.range(0, 1);
  }

  OptionTable::Given parse(const std::vector<std::string>& flags) {
    Arguments arguments(flags);
    const OptionTable::Given given = table.parse(arguments.count(), arguments.values(), "example");
    for (const auto& [name, text] : given)
      if (name != "set") table.set_text(name, text);
    return given;
  }
  std::string error(const std::vector<std::string>& flags) {
    return error_text<UserError>([&] { parse(flags); });
  }
  std::string json_error(const char* text) {
    return error_text<UserError>([&] { table.set_json(Json::parse(text), "[config] f.json"); });
  }
};

TEST(Options, EveryTypeIsReadFromFlags) {
  Example e;
  e.parse({"--nesterov", "--batch-size", "64", "--lr=1e-2", "--free", ".5", "--model=vgg",
           "--schedule", "step", "--milestones", "1,2,3", "--densities=0.5, 1"});
  EXPECT_TRUE(e.nesterov);
  EXPECT_EQ(e.batch_size, 64);
  EXPECT_EQ(e.lr, 0.01);
  EXPECT_EQ(e.free, 0.5);
  EXPECT_EQ(e.model, "vgg");
  EXPECT_EQ(e.schedule, "step");
  EXPECT_EQ(e.milestones, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(e.densities, (std::vector<double>{0.5, 1}));
}

TEST(Options, WhatIsNotGivenKeepsItsDefault) {
  Example e;
  EXPECT_TRUE(e.parse({}).empty());
  EXPECT_EQ(e.batch_size, 32);
  EXPECT_EQ(e.model, "lenet");
}

TEST(Options, EveryTypeIsReadFromJson) {
  Example e;
  e.table.set_json(Json::parse(R"({"nesterov": true, "batch_size": 64, "lr": 1, "model": "vgg",
                                   "milestones": [], "densities": [0.5, 1]})"),
                   "[config]");
  EXPECT_TRUE(e.nesterov);
  EXPECT_EQ(e.batch_size, 64);
  EXPECT_EQ(e.lr, 1.0);
  EXPECT_EQ(e.model, "vgg");
  EXPECT_TRUE(e.milestones.empty());
  EXPECT_EQ(e.densities, (std::vector<double>{0.5, 1}));
}

TEST(Options, JsonGoesRoundBitForBit) {
  Example from, to;
  from.parse(
      {"--lr", "0.30000000000000004", "--nesterov", "--milestones", "7", "--model", "ü\"\n"});
  to.table.set_json(Json::parse(from.table.json().dump()), "[config]");
  EXPECT_EQ(to.table.json(), from.table.json());
  EXPECT_EQ(to.lr, 0.1 + 0.2);
}

TEST(Options, AFlagMayBeSwitchedOff) {
  Example e;
  e.nesterov = true;  // as a configuration file may have it
  e.parse({"--nesterov=false"});
  EXPECT_FALSE(e.nesterov);
  e.parse({"--nesterov=true"});
  EXPECT_TRUE(e.nesterov);
  e.parse({"--nesterov=false", "--nesterov"});
  EXPECT_TRUE(e.nesterov);
  EXPECT_EQ(e.error({"--nesterov=perhaps"}),
            "[options] nesterov is perhaps; expected true or false");
  EXPECT_EQ(e.error({"--nesterov", "false"}), "[options] unexpected argument \"false\"");
}

TEST(Options, AnEmptyListAndAnEmptyText) {
  Example e;
  e.parse({"--milestones", "", "--model", ""});
  EXPECT_TRUE(e.milestones.empty());
  EXPECT_EQ(e.model, "");
}

struct Wrong {
  std::vector<std::string> flags;
  std::string error;
};

void expect_errors(const std::vector<Wrong>& all) {
  for (const Wrong& wrong : all) {
    Example e;
    const Json before = e.table.json();
    EXPECT_EQ(e.error(wrong.flags), wrong.error);
    EXPECT_EQ(e.table.json(), before) << "changed by a value that was refused: " << wrong.error;
  }
}

TEST(Options, AWrongValueIsNamedAndChangesNothing) {
  expect_errors(
      {{{"--batch-size", "0"}, "[options] batch-size is 0; expected 1 to 1000"},
       {{"--batch-size", "-1"}, "[options] batch-size is -1; expected 1 to 1000"},
       {{"--batch-size=-1"}, "[options] batch-size is -1; expected 1 to 1000"},
       {{"--batch-size", "1.5"}, "[options] batch-size is 1.5; expected an integer"},
       {{"--batch-size", "1e2"}, "[options] batch-size is 1e2; expected an integer"},
       {{"--batch-size", "64k"}, "[options] batch-size is 64k; expected an integer"},
       {{"--batch-size", "0x40"}, "[options] batch-size is 0x40; expected an integer"},
       {{"--batch-size", ""}, "[options] batch-size is ; expected an integer"},
       {{"--batch-size", "true"}, "[options] batch-size is true; expected an integer"},
       {{"--batch-size", "9223372036854775808"},
        "[options] batch-size is 9223372036854775808; expected an integer"},
       {{"--batch-size", "99999999999999999999999"},
        "[options] batch-size is 99999999999999999999999; expected an integer"},
       {{"--lr", "-0.1"}, "[options] lr is -0.1; expected 0 to 10"},
       {{"--lr=-0.1"}, "[options] lr is -0.1; expected 0 to 10"},
       {{"--lr", "nan"}, "[options] lr is nan; expected 0 to 10"},
       {{"--lr", "-nan"}, "[options] lr is -nan; expected 0 to 10"},
       {{"--lr", "inf"}, "[options] lr is inf; expected 0 to 10"},
       {{"--lr", "0,1"}, "[options] lr is 0,1; expected a number"},
       {{"--lr", "fast"}, "[options] lr is fast; expected a number"},
       {{"--lr", "0.1 "}, "[options] lr is 0.1 ; expected a number"},
       {{"--lr", "1e999"}, "[options] lr is 1e999; expected a number"},
       {{"--schedule", "cos"}, "[options] schedule is cos; expected one of: step, cosine"},
       {{"--schedule", ""}, "[options] schedule is ; expected one of: step, cosine"},
       {{"--milestones", "1,x"},
        "[options] milestones is 1,x; expected a list of numbers, like 1,2,3"},
       {{"--milestones", "1.5"},
        "[options] milestones is 1.5; expected a list of numbers, like 1,2,3"},
       {{"--milestones", "1,"},
        "[options] milestones is 1,; expected a list of numbers, like 1,2,3"},
       {{"--milestones", "[1,2]"},
        "[options] milestones is [1,2]; expected a list of numbers, like 1,2,3"},
       {{"--milestones", "1,-2"}, "[options] milestones is 1,-2; expected 0 to 1000"},
       {{"--densities", "nan"},
        "[options] densities is nan; expected a list of numbers, like 1,2,3"},
       {{"--densities", "0.5,1.5"}, "[options] densities is 0.5,1.5; expected 0 to 1"},
       {{"--model", "\xff"}, "[options] model is \xff; expected a text in UTF-8"}});
}

TEST(Options, AnUnknownFlagNamesTheNearest) {
  expect_errors(
      {{{"--batchsize", "3"},
        "[options] unknown flag --batchsize; nearest is --batch-size; --help lists all"},
       {{"--modle=vgg"},
        "[options] unknown flag --modle=vgg; nearest is --model; --help lists all"},
       {{"--batch_size=3"},
        "[options] unknown flag --batch_size=3; nearest is --batch-size; --help lists all"},
       {{"-lr", "0.1"}, "[options] unknown flag -lr; nearest is --lr; --help lists all"},
       {{"--xyzzy-plugh"}, "[options] unknown flag --xyzzy-plugh; --help lists all"},
       {{"--"}, "[options] unexpected argument \"--\""},
       {{"train"}, "[options] unexpected argument \"train\""},
       {{"--milestones", "1", "2"}, "[options] unexpected argument \"2\""}});
}

TEST(Options, AFlagWithoutItsValueIsNamed) {
  Example e;
  EXPECT_EQ(e.error({"--lr"}), "[options] --lr needs one value");
  EXPECT_EQ(e.error({"--model", "--lr", "3"}), "[options] --model needs one value; found --lr");
}

TEST(Options, SettingsMayBeRepeatedAndKeepTheirOrder) {
  Example e;
  const OptionTable::Given given =
      e.parse({"--set", "a.b=1", "--lr", "1", "--set=c.d=x=y", "--set", "a.b=-2"});
  std::vector<std::string> settings;
  for (const auto& [name, text] : given)
    if (name == "set") settings.push_back(text);
  EXPECT_EQ(settings, (std::vector<std::string>{"a.b=1", "c.d=x=y", "a.b=-2"}));
  EXPECT_EQ(e.error({"--set"}), "[options] --set needs one value");
}

TEST(Options, JsonErrorsNameFileKeyAndValue) {
  Example e;
  EXPECT_EQ(e.json_error(R"({"batchsize": 1})"),
            "[config] f.json: unknown key \"batchsize\"; nearest is \"batch_size\"");
  EXPECT_EQ(e.json_error(R"({"batch-size": 1})"),
            "[config] f.json: unknown key \"batch-size\"; nearest is \"batch_size\"");
  EXPECT_EQ(e.json_error(R"({"xyzzy_plugh": 1})"), "[config] f.json: unknown key \"xyzzy_plugh\"");
  EXPECT_EQ(e.json_error("[1]"), "[config] f.json: not a JSON object");
  EXPECT_EQ(e.json_error(R"({"lr": 11})"), "[config] f.json: lr is 11; expected 0 to 10");
  EXPECT_EQ(e.json_error(R"({"lr": "0.1"})"), "[config] f.json: lr is 0.1; expected a number");
  EXPECT_EQ(e.json_error(R"({"lr": null})"), "[config] f.json: lr is null; expected a number");
  EXPECT_EQ(e.json_error(R"({"batch_size": 64.0})"),
            "[config] f.json: batch-size is 64.0; expected an integer");
  EXPECT_EQ(e.json_error(R"({"nesterov": 1})"),
            "[config] f.json: nesterov is 1; expected true or false");
  EXPECT_EQ(e.json_error(R"({"model": ["a"]})"),
            "[config] f.json: model is \"a\"; expected a text in UTF-8");
  EXPECT_EQ(e.json_error(R"({"milestones": 3})"),
            "[config] f.json: milestones is 3; expected a list of numbers, like 1,2,3");
}

TEST(Options, HelpShowsEveryOptionItsDefaultAndChoices) {
  Example e;
  std::string help;
  try {
    e.parse({"--help"});
    FAIL() << "no help";
  } catch (const HelpText& text) {
    help = text.text;
  }
  for (const char* part :
       {"--nesterov", "--batch-size", "images per step", "=32", "=0.1", "=lenet", "=81,122",
        "=0.25", "(step, cosine)", "Subcommunicator", "Other", "--set"})
    EXPECT_NE(help.find(part), std::string::npos) << part << " is missing in\n" << help;
}

}  // namespace
}  // namespace tw::test
