#include "engine/core/utf8.h"

#include <fmt/format.h>
#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>

namespace tw {

namespace {

/// Writes the bytes of each character for which `escapes` holds, and those of none, as `\xe9`. A
/// byte of none has the code -1.
template <class Escapes>
std::string escaped(std::string_view text, const Escapes& escapes) {
  std::string result;
  while (!text.empty()) {
    utf8proc_int32_t code = -1;
    const auto found = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                        std::ssize(text), &code);
    const std::string_view character =
        text.substr(0, static_cast<size_t>(std::max<utf8proc_ssize_t>(1, found)));
    if (found > 0 && !escapes(code, character))
      result += character;
    else
      for (const char byte : character)
        result += fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
    text.remove_prefix(character.size());
  }
  return result;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  return escaped(text, [](int32_t, std::string_view) { return false; });
}

std::string printable(std::string_view text, std::string_view keep) {
  return escaped(text, [&](int32_t code, std::string_view character) {
    return utf8proc_category(code) == UTF8PROC_CATEGORY_CC && keep.find(character) == keep.npos;
  });
}

std::string composed(const std::string& text) {
  auto* const nfc =
      utf8proc_NFC(reinterpret_cast<const utf8proc_uint8_t*>(text.c_str()));  // null: no UTF-8
  std::string result = nfc ? reinterpret_cast<const char*>(nfc) : text;
  std::free(nfc);
  return result;
}

std::string other_form_hint(const std::string& name, const std::vector<std::string>& others) {
  const bool any = std::ranges::any_of(others, [&](const std::string& other) {
    return other != name && composed(other) == composed(name);
  });
  return any ? " (the same letters in another Unicode form, NFC or NFD)" : "";
}

}  // namespace tw
