// The folder of the sources, for tests that read files of it.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace tw::test {

/// TW_SOURCE if it is set, because a test may run elsewhere; else the folder of the compilation.
inline std::filesystem::path source_folder() {
  const char* const moved = std::getenv("TW_SOURCE");
  return moved ? std::filesystem::path(moved)
               : std::filesystem::path(__FILE__).parent_path() / "../..";
}

}  // namespace tw::test
