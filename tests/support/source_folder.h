// Where the project's files lie, for tests that read some.
#pragma once

#include <cstdlib>
#include <filesystem>

namespace tw::test {

/// The folder of the sources: where they were compiled, or what TW_SOURCE names, since a test may
/// run elsewhere.
inline std::filesystem::path source_folder() {
  const char* const moved = std::getenv("TW_SOURCE");
  return moved ? std::filesystem::path(moved)
               : std::filesystem::path(__FILE__).parent_path() / "../..";
}

}  // namespace tw::test
