// TW_KERNEL calls the code that was compiled for the instruction set of this process.
#include "engine/core/simd.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>

#define TW_KERNELS "tests/engine/core/simd_test.cpp"
#include "engine/core/each_instruction_set.h"

#ifdef TW_CPU
namespace tw::test::TW_CPU {

inline size_t vector_bytes() { return TW_VECTOR_BYTES; }

}  // namespace tw::test::TW_CPU
#else
namespace tw::test {
namespace {

TEST(Simd, AKernelIsThatOfTheInstructionSetOfThisProcess) {
  const InstructionSet set = instruction_set();
  if (const char* wanted = std::getenv("THINWIRE_CPU"); wanted != nullptr && *wanted != '\0') {
    EXPECT_EQ(name(set), wanted);
  }
  const size_t expected = set == InstructionSet::v4 ? 64 : set == InstructionSet::v3 ? 32 : 16;
  EXPECT_EQ(TW_KERNEL(vector_bytes), expected);
}

}  // namespace
}  // namespace tw::test
#endif
