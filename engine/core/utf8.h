// Text of any bytes, such as names of files, as UTF-8.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw {

/// The text with each byte that is not part of UTF-8 written as `\xe9`, so that JSON and CSV files
/// can hold it.
std::string as_utf8(std::string_view text);

/// The same, also with the bytes of control characters but those in `keep`, so that a terminal
/// shows them and does not act on them.
std::string printable(std::string_view text, std::string_view keep = {});

/// The text in Unicode's composed form (NFC).
std::string composed(const std::string& text);
/// For the error of a name that is not one of `others`: a clause in parentheses, if one of them has
/// the same letters in another Unicode form; else empty.
std::string other_form_hint(const std::string& name, const std::vector<std::string>& others);

}  // namespace tw
