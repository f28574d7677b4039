// Strict parsing of JSON in user files.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace tw {

/// Most nested lists and objects. The library copies and prints values by recursion, so deeper
/// nesting could overflow the stack.
inline constexpr int kDeepestJson = 64;

/// Parses `text` to nlohmann's json or ordered_json. Throws UserError, which starts with `source`,
/// on a syntax error, nesting deeper than kDeepestJson, or a repeated key in an object.
template <class Value>
Value parse_json(std::string_view text, const std::string& source);

/// The same for a file of our own that may be missing or damaged: null instead of an error.
template <class Value>
Value parse_json_if_valid(std::string_view text);

}  // namespace tw
