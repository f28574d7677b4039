// Registries and settings (--set).
#include <gtest/gtest.h>

#include "engine/core/registry.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

Registry<int> fruits() {
  Registry<int> registry("fruit");
  registry.add({"pear", "green", 2});
  registry.add({"apple", "red", 1});
  return registry;
}

TEST(Registry, FindsByNameInAlphabeticalOrder) {
  const Registry<int> registry = fruits();
  EXPECT_EQ(registry.find("pear").value, 2);
  EXPECT_EQ(registry.find("apple").help, "red");
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"apple", "pear"}));
}

TEST(Registry, AnUnknownNameListsTheKnownAndTheNearest) {
  const Registry<int> registry = fruits();
  EXPECT_EQ(error_text<UserError>([&] { registry.find("aple"); }),
            "unknown fruit \"aple\"; nearest is \"apple\"; known: apple, pear");
  EXPECT_EQ(error_text<UserError>([&] { registry.find("strawberry"); }),
            "unknown fruit \"strawberry\"; known: apple, pear");
  EXPECT_NE(error_text<UserError>([&] { registry.find(""); }), "");
}

TEST(Registry, ADuplicateNameIsRejected) {
  Registry<int> registry = fruits();
  EXPECT_THROW(registry.add({"pear", "yellow", 3}), std::logic_error);
  EXPECT_EQ(registry.find("pear").value, 2);
}

TEST(Registry, ANameOfOtherCharactersIsRejected) {
  Registry<int> registry = fruits();
  for (const char* name : {"", "blood-orange", "a.b", "Kiwi", "fig "})
    EXPECT_THROW(registry.add({name, "help", 1}), std::logic_error) << name;
  EXPECT_TRUE(registry.add({"blood_orange", "help", 4, {}, {"blood-orange"}}));
  EXPECT_EQ(registry.find("blood-orange").value, 4);
}

Registry<int> aliased_fruits() {
  Registry<int> registry = fruits();
  registry.add({"pomegranate", "red", 3, {{"seeds", "600", "how many"}}, {"pg"}});
  return registry;
}

TEST(Registry, AnAliasFindsItsEntry) {
  const Registry<int> registry = aliased_fruits();
  EXPECT_EQ(registry.find("pg").name, "pomegranate");
  EXPECT_EQ(&registry.find("pg"), &registry.find("pomegranate"));
  EXPECT_EQ(registry.find("pg").label(), "pomegranate [pg]");
  EXPECT_EQ(registry.find("pear").label(), "pear");
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"apple", "pear", "pomegranate"}));
}

TEST(Registry, AnUnknownNameListsAliasesInBrackets) {
  EXPECT_EQ(error_text<UserError>([&] { aliased_fruits().find("pgg"); }),
            "unknown fruit \"pgg\"; nearest is \"pg\"; known: apple, pear, pomegranate [pg]");
}

TEST(Registry, ADuplicateAliasIsRejected) {
  Registry<int> registry = aliased_fruits();
  EXPECT_THROW(registry.add({"pg", "an alias already", 4}), std::logic_error);
  EXPECT_THROW(registry.add({"quince", "yellow", 4, {}, {"pear"}}), std::logic_error);
  EXPECT_FALSE(registry.entries().contains("quince"));
}

TEST(Settings, AnAliasIsAcceptedBeforeAKey) {
  Settings settings;
  declare(settings, aliased_fruits());
  settings.set("pg.seeds", "7");
  EXPECT_EQ(settings.integer("pomegranate.seeds"), 7);
  EXPECT_EQ(settings.values().size(), 1u);
  settings.set_assignment("pomegranate.seeds=8");
  EXPECT_EQ(settings.integer("pomegranate.seeds"), 8);
}

TEST(Nearest, IsTheSmallestEditDistance) {
  const std::vector<std::string> known{"density", "density-warmup", "device", "seed", "seeds"};
  EXPECT_EQ(nearest("densty", known), "density");
  EXPECT_EQ(nearest("dnesity", known), "density");
  EXPECT_EQ(nearest("seed", known), "seed");
  EXPECT_EQ(nearest("sed", known), "seed");
  EXPECT_EQ(nearest("density-warump", known), "density-warmup");
  EXPECT_EQ(nearest("quux", known), "");
  EXPECT_EQ(nearest("learning-rate", {"density", "lr"}), "lr");
  EXPECT_EQ(nearest("seed", {}), "");
}

Settings example() {
  Settings settings;
  settings.declare("gaussian", {{"refine", "paper", "how", {"paper", "bisect"}},
                                {"steps", "4", "how often"},
                                {"tolerance", "0.5", "how near"},
                                {"clip", "false", "whether"}});
  return settings;
}

TEST(Settings, StartWithTypedDefaults) {
  const Settings settings = example();
  EXPECT_EQ(settings.text("gaussian.refine"), "paper");
  EXPECT_EQ(settings.integer("gaussian.steps"), 4);
  EXPECT_EQ(settings.number("gaussian.tolerance"), 0.5);
  EXPECT_FALSE(settings.flag("gaussian.clip"));
  EXPECT_EQ(settings.values().size(), 4u);
}

TEST(Settings, AreSetByAssignment) {
  Settings settings = example();
  settings.set_assignment("gaussian.refine=bisect");
  settings.set_assignment("gaussian.steps=-7");
  settings.set_assignment("gaussian.tolerance=1e-3");
  settings.set_assignment("gaussian.clip=true");
  EXPECT_EQ(settings.text("gaussian.refine"), "bisect");
  EXPECT_EQ(settings.integer("gaussian.steps"), -7);
  EXPECT_EQ(settings.number("gaussian.tolerance"), 1e-3);
  EXPECT_TRUE(settings.flag("gaussian.clip"));
  EXPECT_EQ(settings.values().at("gaussian.steps"), "-7");
}

TEST(Settings, RejectUndeclaredKeysAndOtherChoices) {
  Settings settings = example();
  const auto error = [&](const char* assignment) {
    return error_text<UserError>([&] { settings.set_assignment(assignment); });
  };
  EXPECT_NE(error("gaussian.refne=paper").find("nearest is \"gaussian.refine\""),
            std::string::npos);
  EXPECT_EQ(error("gaussian.refine=x"),
            "[settings] gaussian.refine=x; expected one of: paper, bisect");
  EXPECT_EQ(error("gaussian.refine"),
            "[settings] \"gaussian.refine\" is not of the form key=value");
  EXPECT_NE(error("=paper"), "");
  EXPECT_NE(error(""), "");
  EXPECT_EQ(settings.text("gaussian.refine"), "paper");
}

// a mistyped value is an error when it is set, not when the selector is created
TEST(Settings, AValueIsCheckedWhenItIsSet) {
  Settings settings = example();
  for (const char* wrong :
       {"gaussian.steps=four", "gaussian.steps=1.5", "gaussian.steps=", "gaussian.steps=4 ",
        "gaussian.steps=99999999999999999999", "gaussian.tolerance=0,5", "gaussian.tolerance=nan",
        "gaussian.tolerance=inf", "gaussian.clip=yes", "gaussian.clip=1"})
    EXPECT_NE(error_text<UserError>([&] { settings.set_assignment(wrong); }), "") << wrong;
  EXPECT_EQ(settings.integer("gaussian.steps"), 4);
}

TEST(Settings, ANumberIsWithinTheDeclaredRange) {
  Settings settings;
  settings.declare("hierarchical",
                   {{.key = "node", .value = "4", .help = "", .least = 1, .most = 65536}});
  for (const char* value : {"1", "65536"}) {
    settings.set("hierarchical.node", value);
    EXPECT_EQ(settings.text("hierarchical.node"), value);
  }
  EXPECT_EQ(error_text<UserError>([&] { settings.set("hierarchical.node", "0"); }),
            "[settings] hierarchical.node=0; expected at least 1");
  EXPECT_EQ(error_text<UserError>([&] { settings.set("hierarchical.node", "65537"); }),
            "[settings] hierarchical.node=65537; expected at most 65536");
}

TEST(Settings, AKeyThatWasSetKeepsItsValueWhenTheDefaultChanges) {
  Settings settings = example();
  settings.set_default("gaussian.steps", "2");
  EXPECT_EQ(settings.integer("gaussian.steps"), 2);
  settings.set("gaussian.steps", "4");
  settings.set_default("gaussian.steps", "8");
  EXPECT_EQ(settings.integer("gaussian.steps"), 4);
  EXPECT_THROW(settings.set_default("gaussian.clip", "yes"), UserError);
}

TEST(Settings, ReadingAnUndeclaredKeyIsALogicError) {
  EXPECT_THROW(example().text("gaussian.other"), std::logic_error);
}

TEST(Settings, TellWhichChangedKeysNobodyRead) {
  Settings settings;
  settings.declare(
      "pear", {{"size", "1", ""}, {"colour", "green", ""}, {"seeds", "3", ""}, {"age", "1", ""}});
  settings.set_default("pear.age", "2");
  settings.set("pear.size", "2");
  settings.set("pear.colour", "red");
  settings.set("pear.seeds", "3");
  EXPECT_EQ(settings.integer("pear.size"), 2);
  const Settings copy = settings;
  EXPECT_EQ(copy.unread({}), std::vector<std::string>{"pear.colour"});
  EXPECT_EQ(copy.unread({"pear.seeds"}), (std::vector<std::string>{"pear.colour", "pear.seeds"}));
  copy.forget_reads();
  EXPECT_EQ(copy.unread({}), (std::vector<std::string>{"pear.colour", "pear.size"}));
}

}  // namespace
}  // namespace tw::test
