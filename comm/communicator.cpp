#include "comm/communicator.h"

#include <chrono>

namespace tw {

double Communicator::now() const {
  const auto time = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(time).count();
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
