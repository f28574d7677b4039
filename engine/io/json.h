// Strict parsing of JSON in user files.
#pragma once

#include <cstdint>
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

/// The integer in a value of nlohmann's json or ordered_json; its type_error for any other value,
/// also for 1.5 and 1e30, which get<int64_t>() would convert. A number of 2^63 or more is negative.
template <class Value>
int64_t integer_of(const Value& value) {
  return value.template get_ref<const typename Value::number_integer_t&>();
}

}  // namespace tw
