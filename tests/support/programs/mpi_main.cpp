// main of gtest under mpirun. Every rank runs every test; rank 0 prints the report, other ranks
// only failures.

#include <gtest/gtest.h>

#include <string>

#include "comm/transports.h"
#include "tests/support/programs/run_tests.h"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

  void OnTestStart(const testing::TestInfo& test) override {
    test_ = fmt::format("{}.{}", test.test_suite_name(), test.name());
  }

  // gtest holds its lock here, so asking UnitTest for the current test would not return. Rank 0
  // writes to the same output and may not have ended its line.
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "\nrank {}: {}: {}:{}: {}\n", rank_, test_,
               result.file_name() ? result.file_name() : "", result.line_number(),
               result.message());
  }

 private:
  int rank_;
  std::string test_;
};

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const int rank = tw::make_mpi_communicator()->rank();
  if (rank != 0) {
    auto& listeners = testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
    listeners.Append(new FailuresOnly(rank));
  }
  return tw::finish_mpi(tw::test::run_tests());
}
