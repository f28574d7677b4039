// OptionTable: flags, JSON, help and error messages.
#include "apps/common/options.h"

#include <nlohmann/json.hpp>

#include "engine/core/error.h"
#include "engine/core/settings.h"
#include "tests/support/arguments.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

enum class Fall { step, cosine };
constexpr auto words(Fall) { return std::array{"step", "cosine"}; }

/// The text that a parse prints instead of setting options.
std::string help_text(const std::function<void()>& parse) {
  try {
    parse();
  } catch (const HelpText& help) {
    return help.text;
  }
  ADD_FAILURE() << "no help";
  return "";
}

/// A table with an option of every type.
struct Example {
  bool nesterov = false;
  int64_t batch_size = 32;
  double lr = 0.1;
  double free = 0;
  std::string model = "lenet";
  Fall schedule = Fall::cosine;
  std::vector<int64_t> milestones{81, 122};
  std::vector<double> densities{0.25};
  Settings settings;
  OptionTable table;

  Example() {
    table.group("Training");
    table.add("nesterov", nesterov, "Nesterov momentum");
    table.add("batch-size", batch_size, "images per step", {.least = 1, .most = 1000});
    table.add("lr", lr, "learning rate", {.most = 10});
    table.add("free", free, "any number from 0 on");
    table.group("Other");
    table.add("model", model, "network");
    table.add("schedule", schedule, "how the rate falls");
    table.add("milestones", milestones, "epochs", {.most = 1000});
    table.add("densities", densities, "one per epoch",
              {.most = 1, .excludes_least = true, .suggestions = {"one", "two"}});
    settings.declare("dgc", {{.key = "sample", .value = "0.01", .help = "share"}});
    table.add_settings(settings);
  }

  OptionTable::Given parse(const std::vector<std::string>& flags) {
    Arguments arguments(flags);
    OptionTable::Given given = table.parse(arguments.count(), arguments.values(), "example");
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
  EXPECT_EQ(e.schedule, Fall::step);
  EXPECT_EQ(e.milestones, (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(e.densities, (std::vector<double>{0.5, 1}));
}

TEST(Options, AnOptionThatIsNotGivenKeepsItsDefault) {
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

TEST(Options, JsonRoundTripKeepsEveryBit) {
  Example from, to;
  from.parse(
      {"--lr", "0.30000000000000004", "--nesterov", "--milestones", "7", "--model", "ü\"\n"});
  to.table.set_json(Json::parse(from.table.json().dump()), "[config]");
  EXPECT_EQ(to.table.json(), from.table.json());
  EXPECT_EQ(to.lr, 0.1 + 0.2);
}

TEST(Options, ABooleanFlagTakesAValue) {
  Example e;
  e.nesterov = true;  // as a configuration file may set it
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

TEST(Options, AListAndATextMayBeEmpty) {
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
    EXPECT_EQ(e.table.json(), before) << "changed by a refused value: " << wrong.error;
  }
}

TEST(Options, AWrongValueIsReportedAndChangesNothing) {
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
       {{"--densities", "0.5,1.5"},
        "[options] densities is 0.5,1.5; expected more than 0, at most 1"},
       {{"--densities", "0.5,0"}, "[options] densities is 0.5,0; expected more than 0, at most 1"},
       {{"--free", "-0.5"}, "[options] free is -0.5; expected 0 to 1000000000"},
       {{"--free", "inf"}, "[options] free is inf; expected 0 to 1000000000"},
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
       {{"--bach-size=3"},
        "[options] unknown flag --bach-size=3; nearest is --batch-size; --help lists all"},
       {{"-d", "3"}, "[options] unknown flag -d; nearest is --densities; --help lists all"},
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

TEST(Options, SetChangesTheSettings) {
  Example e;
  e.table.set_text("set", "dgc.sample=0.5");
  EXPECT_EQ(e.settings.number("dgc.sample"), 0.5);
  EXPECT_NE(error_text<UserError>([&] {
              e.table.set_text("set", "dgc.sampel=1");
            }).find("nearest is \"dgc.sample\""),
            std::string::npos);
}

/// A table with a required positional option, a second one and a size.
struct FileExample {
  std::string folder, file = "out";
  int64_t bytes = 1024;
  OptionTable table;

  FileExample() {
    table.group("Files");
    table.add("folder", folder, "where to read", {.required = true, .positional = true});
    table.add("file", file, "what to write", {.positional = true});
    table.add("bytes", bytes, "size",
              {.least = 1, .most = 1e12, .letter = 'b', .size_units = true});
  }
  void parse(const std::vector<std::string>& flags) {
    Arguments arguments(flags);
    table.parse_and_set(arguments.count(), arguments.values(), "example");
  }
  std::string error(const std::vector<std::string>& flags) {
    return error_text<UserError>([&] { parse(flags); });
  }
};

TEST(Options, AfterTwoDashesAllArgumentsAreWithoutAFlag) {
  FileExample e;
  e.parse({"-b", "2", "--", "--file", "-b"});
  EXPECT_EQ(e.folder, "--file");
  EXPECT_EQ(e.file, "-b");
  EXPECT_EQ(e.bytes, 2);
  e.parse({"a", "--", "--"});
  EXPECT_EQ(e.folder + e.file, "a--");
  e.parse({"c", "d", "--"});
  EXPECT_EQ(e.folder + e.file, "cd");
  EXPECT_EQ(e.error({"a", "b", "--", "--bytes"}), "[options] unexpected argument \"--bytes\"");
  EXPECT_EQ(e.error({"a", "-b", "--", "1"}), "[options] --bytes needs one value");
}

TEST(Options, AListOfTextsTakesNamesOfAnyBytes) {
  std::vector<std::string> files;
  OptionTable table;
  table.add("files", files, "what to read", {.positional = true});
  Arguments arguments({"caf\xe9", "b"});
  table.parse_and_set(arguments.count(), arguments.values(), "example");
  EXPECT_EQ(files, (std::vector<std::string>{"caf\xe9", "b"}));
}

TEST(Options, PositionalArgumentsFillTheirOptionsInOrder) {
  FileExample e;
  e.parse({"in"});
  EXPECT_EQ(e.folder, "in");
  EXPECT_EQ(e.file, "out");
  e.parse({"a", "-b", "1", "b"});
  EXPECT_EQ(e.folder + e.file, "ab");
  e.parse({"c", "--folder", "d"});
  EXPECT_EQ(e.folder + e.file, "dc");
  EXPECT_EQ(e.error({"a", "b", "c"}), "[options] unexpected argument \"c\"");
  EXPECT_EQ(e.error({}), "[options] FOLDER is missing; --help lists all");
  const std::string help = help_text([&] { e.parse({"--help"}); });
  EXPECT_NE(help.find(" FOLDER [FILE] [OPTIONS]\n"), std::string::npos) << help;
}

TEST(Options, ASizeMayHaveAUnit) {
  FileExample e;
  for (const auto& [text, bytes] : std::vector<std::pair<std::string, int64_t>>{
           {"7", 7}, {"4K", 4096}, {"4kb", 4096}, {"2MiB", 2 << 20}, {"1g", 1 << 30}, {"5B", 5}}) {
    e.parse({"in", "-b", text});
    EXPECT_EQ(e.bytes, bytes) << text;
  }
  for (const char* text : {"K", "4X", "4KK", "1.5K", "99999999999T", ""})
    EXPECT_EQ(e.error({"in", "--bytes", text}),
              fmt::format("[options] bytes is {}; expected a size in bytes, like 4K or 64M", text));
  EXPECT_EQ(e.error({"in", "-b", "0"}), "[options] bytes is 0; expected 1 to 1000000000000");
}

TEST(Subcommands, OneIsChosenByNameAndGetsItsOptions) {
  int64_t lines = 1;
  const auto parse = [&](const std::vector<std::string>& words) {
    std::vector<Subcommand> all(2);
    all[0].name = "select";
    all[0].help = "chooses";
    all[0].table.add("lines", lines, "lines of output");
    all[1].name = "theory";
    Arguments arguments(words);
    return parse_subcommand(all, arguments.count(), arguments.values(), "two things").name;
  };
  EXPECT_EQ(parse({"select", "--lines", "3"}), "select");
  EXPECT_EQ(lines, 3);
  EXPECT_EQ(parse({"theory"}), "theory");
  const auto error = [&](const std::vector<std::string>& words) {
    return error_text<UserError>([&] { parse(words); });
  };
  EXPECT_NE(error({"selct"}).find("nearest is \"select\""), std::string::npos);
  EXPECT_EQ(error({"select", "--line", "3"}),
            "[options] unknown flag --line; nearest is --lines; --help lists all");
  EXPECT_EQ(error({}), "[options] the subcommand is missing; expected one of: select, theory");
  for (const auto& [words, part] : std::vector<std::pair<std::vector<std::string>, std::string>>{
           {{"--help"}, "  select     chooses"},
           {{"select", "--help"}, "program select [OPTIONS]"},
           {{"select", "--help"}, "Exit code: 0 finished"}})
    EXPECT_NE(help_text([&] { parse(words); }).find(part), std::string::npos) << part;
}

TEST(Options, JsonErrorsNameFileKeyAndValue) {
  Example e;
  EXPECT_EQ(e.json_error(R"({"batchsize": 1})"),
            "[config] f.json: unknown key \"batchsize\"; nearest is \"batch_size\"");
  EXPECT_EQ(e.json_error(R"({"batch-size": 1})"),
            "[config] f.json: unknown key \"batch-size\"; nearest is \"batch_size\"");
  EXPECT_EQ(e.json_error(R"({"xyzzy_plugh": 1})"), "[config] f.json: unknown key \"xyzzy_plugh\"");
  EXPECT_EQ(e.json_error(R"({"": 1})"), "[config] f.json: unknown key \"\"; nearest is \"lr\"");
  EXPECT_EQ(e.json_error("[1]"), "[config] f.json: not a JSON object");
  EXPECT_EQ(e.json_error(R"({"lr": 11})"), "[config] f.json: lr is 11; expected 0 to 10");
  EXPECT_EQ(e.json_error(R"({"lr": "0.1"})"),
            "[config] f.json: lr is \"0.1\" in quotes; expected 0.1");
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
  const std::string help = help_text([&] { e.parse({"--help"}); });
  for (const char* part : {"--nesterov", "--batch-size", "images per step", "=32", "=0.1", "=lenet",
                           "=81,122", "=0.25", "(step, cosine)", "Training", "Other", "--set"})
    EXPECT_NE(help.find(part), std::string::npos) << part << " is missing in\n" << help;
}

TEST(Options, DescribeHasEveryOptionWithItsValues) {
  Example e;
  const Json described = Json::parse(help_text([&] { e.parse({"--describe"}); }));
  EXPECT_EQ(described["description"], "example");
  const Json& options = described["options"];
  std::vector<std::string> names;
  for (const Json& option : options) names.push_back(option["name"]);
  EXPECT_EQ(names, (std::vector<std::string>{"nesterov", "batch-size", "lr", "free", "model",
                                             "schedule", "milestones", "densities", "set"}));
  EXPECT_EQ(options[0]["takes_value"], false);
  EXPECT_EQ(options[1]["default"], "32");
  EXPECT_EQ(options[1]["group"], "Training");
  EXPECT_EQ(options[1]["kind"], "an integer");
  EXPECT_EQ(options[5]["choices"], Json({"step", "cosine"}));
  EXPECT_EQ(options[7]["suggestions"], Json({"one", "two"}));
  EXPECT_EQ(options[8]["suggestions"], Json({"dgc.sample="}));
}

}  // namespace
}  // namespace tw::test
