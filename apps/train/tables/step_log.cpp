#include "apps/train/tables/step_log.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace tw {

namespace {
constexpr size_t kMostWaiting = 20;
}

StepLog::StepLog(std::function<void(const StepRecord&)> merged) : merged_(std::move(merged)) {
  waiting_.reserve(kMostWaiting);
}

void StepLog::add(Communicator& comm, const StepRecord& record) {
  waiting_.push_back(record);
  if (waiting_.size() == kMostWaiting) flush(comm);
}

void StepLog::flush(Communicator& comm) {
  const OperationScope operation(comm, "log");
  const std::span<const StepRecord> mine(waiting_);
  allgather(comm, std::as_bytes(mine), mine.size_bytes(), blocks_, mine.size_bytes());
  for (size_t i = 0; i < mine.size(); ++i) {
    StepRecord sum;
    double least_exchange = std::numeric_limits<double>::infinity();
    for (int r = 0; r < comm.size(); ++r) {
      StepRecord one;
      std::memcpy(&one, blocks_.exactly(r, mine.size_bytes()).data() + i * sizeof one, sizeof one);
      sum.step = one.step;
      sum.lr = one.lr;
      sum.density = one.density;
      sum.loss += one.loss;
      sum.top1 += one.top1;
      sum.images += one.images;
      sum.nnz += one.nnz;
      sum.k += one.k;
      sum.bytes += one.bytes;
      sum.seconds += one.seconds / comm.size();
      sum.phases += one.phases;
      least_exchange = std::min(least_exchange, one.phases.exchange - one.wait);
    }
    sum.phases /= comm.size();
    // the last rank to arrive does not wait: the least time is the exchange itself
    sum.wait = std::max(0.0, sum.phases.exchange - least_exchange);
    merged_(sum);
  }
  waiting_.clear();
}

}  // namespace tw
