// OptionTable::describe: the options as JSON, which scripts/manual/ turns into manual pages and
// completions.
#include <nlohmann/json.hpp>

#include "apps/common/options.h"
#include "engine/core/settings.h"

namespace tw {

Json OptionTable::describe(const std::string& description) const {
  Json all = Json::array();
  for (const Option& option : options_) {
    Json one = {{"group", option.group}, {"name", option.name}, {"help", option.help}};
    // "-b,--min-bytes"
    if (const size_t comma = option.flags.find(','); comma != std::string::npos)
      one["letter"] = option.flags.substr(1, comma - 1);
    one["takes_value"] = !option.is_flag;
    one["kind"] = option.kind;
    one["default"] = option.default_text;
    one["choices"] = option.choices;
    one["suggestions"] = option.suggestions;
    one["required"] = option.is_required;
    one["positional"] = option.is_positional;
    all.push_back(std::move(one));
  }
  if (settings_ != nullptr) {
    Json keys = Json::array();
    for (const auto& [key, value] : settings_->values()) {
      const std::vector<std::string>& choices = settings_->choices(key);
      if (choices.empty()) keys.push_back(key + "=");
      for (const std::string& choice : choices) keys.push_back(key + "=" + choice);
    }
    all.push_back({{"group", settings_group_},
                   {"name", "set"},
                   {"help", "a setting that train --list names; may be repeated"},
                   {"takes_value", true},
                   {"kind", "NAME.KEY=VALUE"},
                   {"default", ""},
                   {"choices", Json::array()},
                   {"suggestions", std::move(keys)},
                   {"required", false},
                   {"positional", false}});
  }
  return {{"description", description}, {"options", std::move(all)}};
}

}  // namespace tw
