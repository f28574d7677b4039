// Runs the program analyze inside a test.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "apps/analyze/subcommands.h"
#include "tests/support/arguments.h"

namespace tw::test {

/// What `analyze` with these words prints.
inline std::string analyze_output(const std::vector<std::string>& words) {
  Arguments arguments(words);
  std::vector<Subcommand> all{analyze_select(), analyze_theory(), analyze_compressors()};
  testing::internal::CaptureStdout();
  try {
    parse_subcommand(all, arguments.count(), arguments.values(), "analyze").run();
  } catch (...) {
    testing::internal::GetCapturedStdout();
    throw;
  }
  return testing::internal::GetCapturedStdout();
}

}  // namespace tw::test
