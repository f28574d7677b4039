#include "comm/communicator.h"

#include <chrono>

namespace tw {

double Communicator::now() const {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
}

std::chrono::steady_clock::time_point Communicator::deadline() const {
  using Clock = std::chrono::steady_clock;
  if (timeout_ <= 0) return Clock::time_point::max();
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_));
}

void Communicator::throw_timeout(int peer) const {
  std::string doing;
  for (const std::string_view what : operations_)
    if (!doing.ends_with(what)) doing += fmt::format("{}{}", doing.empty() ? "" : "/", what);
  fail<TimeoutError>("[{}] rank {} has waited {} s for {}", doing.empty() ? "comm" : doing, rank(),
                     timeout_, peer < 0 ? "the others" : fmt::format("rank {}", peer));
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
