#include "comm/communicator.h"

#include <omp.h>

#include <chrono>

namespace tw {

Communicator::Communicator() = default;
Communicator::~Communicator() = default;

Context& Communicator::host() {
  if (!host_) {
    // a Context sets the OpenMP width of its thread, which belongs to the thread's own context
    const int width = omp_get_max_threads();
    host_ = std::make_unique<Context>();
    omp_set_num_threads(width);
  }
  return *host_;
}

double Communicator::now() const {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

void Communicator::throw_timeout(int peer) const {
  std::string operations;
  for (const std::string_view what : operations_)
    if (!operations.ends_with(what))
      operations += fmt::format("{}{}", operations.empty() ? "" : "/", what);
  fail<TimeoutError>("[{}] rank {} has waited {} s for {}",
                     operations.empty() ? "comm" : operations, rank(), timeout_,
                     peer < 0 ? "the others" : fmt::format("rank {}", peer));
}

void Communicator::inherit_timeout(const Communicator& other) {
  timeout_ = other.timeout_;
  operations_ = other.operations_;
}

size_t Communicator::exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  check<Fault>(to < size() && from < size() && to != rank() && from != rank(),
               "[comm] rank {} cannot send to rank {} and receive from rank {}: there are {} ranks",
               rank(), to, from, size());
  const size_t received = do_exchange(ctx, to, out, from, in);
  if (to >= 0) {
    bytes_sent_ += out.size();
    ++messages_sent_;
  }
  return received;
}

}  // namespace tw
