// The exit code of a test program: 0 when a test passed and none failed, 77 when all were skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/instruction_set.h"

namespace tw::test {

constexpr int kAllSkipped = 77;  ///< SKIP_RETURN_CODE in tests/CMakeLists.txt

/// Runs the tests that --gtest_filter names. One that names none is a failure. All are skipped
/// where THINWIRE_CPU names an instruction set that this CPU lacks; a name that is none is a
/// failure.
inline int run_tests() {
  try {
    instruction_set();
  } catch (const UserError& error) {
    write_error_line(error.what());
    const std::string_view wanted = std::getenv("THINWIRE_CPU");
    for (InstructionSet set : {InstructionSet::v3, InstructionSet::v4})
      if (wanted == name(set)) return kAllSkipped;
    return 1;
  }
  const int code = RUN_ALL_TESTS();
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  if (code != 0 || testing::GTEST_FLAG(list_tests) || all.successful_test_count() > 0) return code;
  return all.skipped_test_count() > 0 ? kAllSkipped : 1;
}

}  // namespace tw::test
