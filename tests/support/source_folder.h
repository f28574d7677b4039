// The folder of the sources, for tests that read files of it.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace tw::test {

/// The environment variable TW_SOURCE, for tests that run on another machine; else the folder at
/// compile time.
inline std::filesystem::path source_folder() {
  const char* const moved = std::getenv("TW_SOURCE");
  return moved ? std::filesystem::path(moved)
               : std::filesystem::path(__FILE__).parent_path() / "../..";
}

}  // namespace tw::test
