// MpiRequests: a send and a receive under way in MPI, and the one way we wait for them.
// Implementation header of the MPI transport.
#pragma once

#include <mpi.h>

#include <array>
#include <chrono>
#include <cstddef>

#include "engine/core/error.h"

namespace tw::mpi {

using Clock = std::chrono::steady_clock;

constexpr int kTag = 1;  // of messages

/// Throws Fault with MPI's own text unless `code` is MPI_SUCCESS.
void check_call(int code, const char* call);

class MpiRequests {
 public:
  void receive(void* data, size_t bytes, int from, int tag);
  void send(const void* data, size_t bytes, int to, int tag);
  /// A send that is complete only when its receiver has it.
  void send_surely(const void* data, size_t bytes, int to, int tag);

  /// Any other operation that MPI has begun, in the place of the receive.
  void adopt(MPI_Request request) { requests_[0] = request; }

  /// Waits for what was started without holding the core; false when `deadline` comes first.
  bool wait(Clock::time_point deadline = Clock::time_point::max());
  /// Whether there is nothing (more) to receive.
  bool received();
  /// Bytes of the message received.
  size_t received_bytes() const;

 private:
  bool test();

  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // receive, send
  std::array<MPI_Status, 2> statuses_{};
};

}  // namespace tw::mpi
