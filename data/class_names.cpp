#include "data/class_names.h"

#include <algorithm>
#include <map>

#include "engine/core/error.h"
#include "engine/core/settings.h"
#include "engine/core/text.h"
#include "engine/core/utf8.h"

namespace tw {

namespace {

std::vector<std::string> all_composed(const std::vector<std::string>& names) {
  std::vector<std::string> all(names.size());
  std::ranges::transform(names, all.begin(), composed);
  return all;
}

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

}  // namespace

std::vector<std::string> as_utf8(std::vector<std::string> names) {
  for (std::string& name : names) name = as_utf8(std::string_view(name));
  return names;
}

std::string class_difference(const std::vector<std::string>& data,
                             const std::vector<std::string>& weights) {
  const auto [mine, theirs] = std::ranges::mismatch(data, weights);
  const bool more = mine != data.end(), lacks = theirs != weights.end();
  if (!more && !lacks) return "";
  const auto label = mine - data.begin();
  if (!more) return fmt::format("class {}, \"{}\" in the weights, is missing", label, *theirs);
  if (!lacks) return fmt::format("class {}, \"{}\", is not one of the weights", label, *mine);
  const bool known = among(weights, *mine), present = among(data, *theirs);
  std::string how;
  if (known && present)
    how = " (another order)";
  else if (known)
    how = fmt::format(" (\"{}\" is missing)", *theirs);
  else if (present)
    how = fmt::format(" (\"{}\" is additional)", *mine);
  for (const auto& form : {other_form_hint(*mine, weights), other_form_hint(*theirs, data)})
    if (!form.empty()) how = form;
  return fmt::format("class {} is \"{}\" in the data, \"{}\" in the weights{}", label, *mine,
                     *theirs, how);
}

std::vector<int32_t> class_map(const std::string& map, const std::vector<std::string>& data,
                               const std::vector<std::string>& weights, const std::string& area,
                               const char* there) {
  const std::vector<std::string> here = all_composed(data), known = all_composed(weights);
  const auto check_known = [&](const std::vector<std::string>& names, const std::string& name,
                               const char* where) {
    check(among(names, name), "{}: no class of the {} is called \"{}\"{}", area, where, name,
          nearest_hint(name, names));
  };
  std::map<std::string, std::string> renamed;
  for (const std::string& item : split(map, ',')) {
    if (item == "names") continue;
    const size_t equals = item.find('=');
    check(equals != std::string::npos,
          "[options] class-map has \"{}\"; expected names, or DATA=WEIGHTS for a class that has "
          "another name in the weights",
          item);
    const std::string name = composed(item.substr(0, equals));
    check_known(here, name, "data");
    renamed[name] = composed(item.substr(equals + 1));
  }
  std::vector<int32_t> labels;
  for (const std::string& name : here) {
    const auto other = renamed.find(name);
    const std::string& wanted = other == renamed.end() ? name : other->second;
    check_known(known, wanted, there);
    const auto label = static_cast<int32_t>(std::ranges::find(known, wanted) - known.begin());
    const auto same = std::ranges::find(labels, label);
    check(same == labels.end(), "{}: the classes \"{}\" and \"{}\" both become \"{}\"", area,
          data[static_cast<size_t>(same - labels.begin())], data[labels.size()], wanted);
    labels.push_back(label);
  }
  return labels;
}

}  // namespace tw
