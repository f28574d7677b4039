// MpiRequests: one send and one receive in progress in MPI, and the wait for both. Implementation
// header of the MPI transport.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

#include "comm/transports/mpi/mpi_c.h"
#include "comm/wait_limit.h"
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
  /// A synchronous send (MPI_Issend): completes when its receiver has started to receive it.
  void send_surely(const void* data, size_t bytes, int to, int tag);

  /// Tracks another started MPI operation in place of the receive.
  void adopt(MPI_Request request) { requests_[0] = request; }

  /// Polls, with short sleeps, until both have completed; false when the limit passes first.
  bool wait(WaitLimit& limit);
  /// Whether no receive is pending.
  bool received();
  /// Bytes of the received message.
  size_t received_bytes() const;

 private:
  bool test();

  std::array<MPI_Request, 2> requests_{MPI_REQUEST_NULL, MPI_REQUEST_NULL};  // receive, send
  std::array<MPI_Status, 2> statuses_{};
};

}  // namespace tw::mpi
