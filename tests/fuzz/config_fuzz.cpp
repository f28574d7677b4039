// Any bytes as a configuration file and as the text of a flag: set, or a UserError.
#include "apps/support/options.h"
#include "engine/error.h"
#include "engine/settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  bool flag = false;
  int64_t integer = 1;
  double number = 0.5;
  std::string word = "one";
  std::vector<int64_t> integers{1, 2};
  std::vector<double> numbers{0.5};
  tw::OptionTable table;
  table.add("group", "flag", flag, "help");
  table.add("group", "some-integer", integer, "help");
  table.range(0, 1e9);
  table.add("group", "number", number, "help");
  table.range(0, 1);
  table.add("group", "word", word, "help");
  table.choices({"one", "two"});
  table.add("group", "integers", integers, "help");
  table.range(0, 100);
  table.add("group", "numbers", numbers, "help");
  tw::Settings settings;
  settings.declare("part", {{"kind", "a", "help", {"a", "b"}}, {"count", "3", "help"}});
  const auto tolerate = [](const auto& body) {
    try {
      body();
    } catch (const tw::UserError&) {
    }
  };
  const auto json = tw::Json::parse(text, nullptr, false);
  if (!json.is_discarded()) tolerate([&] { table.set_json(json, "fuzz"); });
  for (const char* name : {"flag", "some-integer", "number", "word", "integers", "numbers"})
    tolerate([&] { table.set_text(name, text); });
  tolerate([&] { settings.set_assignment(text); });
  (void)table.json().dump();
  return 0;
}
