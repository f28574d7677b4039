// Parts and numbers of a text.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tw {

/// The parts of a text between separators: none of an empty text, and no empty one at its end.
inline std::vector<std::string> split(std::string_view text, char by) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < text.size(); at += parts.back().size() + 1)
    parts.emplace_back(text.substr(at, text.find(by, at) - at));
  return parts;
}

/// The whole of a text as a number, which may be infinite or NaN; nullopt if it is none.
template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const text_end = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), text_end, number);
  return error == std::errc{} && end == text_end ? std::optional(number) : std::nullopt;
}

}  // namespace tw
