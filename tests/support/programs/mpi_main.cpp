// main of gtest under mpirun. Every rank runs every test; rank 0 prints the report, other ranks
// only failures.

#include <gtest/gtest.h>

#include "comm/transports.h"

namespace {

class FailuresOnly : public testing::EmptyTestEventListener {
 public:
  explicit FailuresOnly(int rank) : rank_(rank) {}

  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    fmt::print(stderr, "rank {}: {}.{}: {}:{}: {}\n", rank_, test ? test->test_suite_name() : "",
               test ? test->name() : "", result.file_name() ? result.file_name() : "",
               result.line_number(), result.message());
  }

 private:
  int rank_;
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
  return tw::finish_mpi(RUN_ALL_TESTS());
}
