// The checksum of a safetensors file, from its definition.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/io/json.h"

namespace tw::fuzz {

/// The checksum that the file should have, computed from its definition.
inline std::string checksum_of(nlohmann::json header, std::string_view data) {
  header["__metadata__"].erase("checksum");
  std::vector<std::pair<int64_t, int64_t>> extents;
  for (const auto& [key, entry] : header.items())
    if (key != "__metadata__") {
      const auto& offsets = entry.at("data_offsets");
      extents.emplace_back(tw::integer_of(offsets.at(0)), tw::integer_of(offsets.at(1)));
    }
  std::ranges::sort(extents);
  tw::Hash all;
  for (const auto& [begin, end] : extents)
    if (0 <= begin && begin < end && end <= std::ssize(data)) {
      const auto tensor = data.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
      all.add(fmt::format("{:016x}", tw::checksum(std::as_bytes(std::span(tensor)))));
    }
  const std::string text = fmt::format("{}{:016x}", header.dump(), all.value());
  return fmt::format("{:016x}", tw::checksum(std::as_bytes(std::span(text))));
}

/// Repairs the checksum of a safetensors file that has one and whose header can be read.
inline void mend_safetensors(std::string& bytes) {
  uint64_t length = 0;
  if (bytes.size() < sizeof length) return;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (length > bytes.size() - sizeof length) return;
  const std::string_view text(bytes.data() + sizeof length, length);
  try {
    const auto header = tw::parse_json<nlohmann::json>(text, "");
    const std::string& wrong =
        header.at("__metadata__").at("checksum").get_ref<const std::string&>();
    const std::string right =
        checksum_of(header, std::string_view(bytes).substr(sizeof length + length));
    const size_t at = text.find(wrong);
    if (wrong.size() == right.size() && at != text.npos)
      bytes.replace(sizeof length + at, right.size(), right);
  } catch (const nlohmann::json::exception&) {
  } catch (const tw::UserError&) {
  }
}

}  // namespace tw::fuzz
