// JSON of a user's file, read strictly.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tw {

/// Lists and objects within each other. The library copies and prints values by recursion, which
/// a file of nothing but brackets would drive through the end of the stack.
inline constexpr int kDeepestJson = 64;

/// `text` as nlohmann's json or ordered_json. UserError, which begins with `place`, when it is no
/// JSON, is nested deeper than kDeepestJson, or has a key twice in one object.
template <class Value>
Value parse_json(std::string_view text, const std::string& place);

}  // namespace tw
