#include "engine/io/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "engine/core/error.h"

namespace tw {

template <class Value>
Value parse_json(std::string_view text, const std::string& source) {
  using Event = typename Value::parse_event_t;
  // the library would silently keep the last value of a repeated key
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Event event, Value& parsed) {
    if (event == Event::array_start || event == Event::object_start)
      check(depth < kDeepestJson, "{}: nested deeper than {} levels", source, kDeepestJson);
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key)
      check(keys.back().insert(parsed.template get<std::string>()).second,
            "{}: key {:.200} occurs twice", source, parsed.dump());
    return true;
  };
  try {
    return Value::parse(text.begin(), text.end(), watch);
  } catch (const typename Value::exception& error) {
    // the library's text is "[its name] parse error at line L, column C: what was expected"
    const std::string what = error.what();
    size_t begin = what.find("line ");
    if (begin == std::string::npos) begin = what.find("] ") + 2;
    fail("{}: {:.200}", source, what.substr(begin));
  }
}

template <class Value>
Value parse_json_if_valid(std::string_view text) {
  try {
    return parse_json<Value>(text, "");
  } catch (const UserError&) {
    return {};
  }
}

template nlohmann::json parse_json(std::string_view, const std::string&);
template nlohmann::ordered_json parse_json(std::string_view, const std::string&);
template nlohmann::json parse_json_if_valid(std::string_view);
template nlohmann::ordered_json parse_json_if_valid(std::string_view);

}  // namespace tw
