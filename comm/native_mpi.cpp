// Started non-blocking and waited for like any message here, because MPI's blocking calls keep a
// core busy while they wait.

#include "comm/native_mpi.h"

#include <mpi.h>

#include <algorithm>

#include "comm/in_flight_mpi.h"

namespace tw::mpi {
namespace {

constexpr size_t kMost = size_t{1} << 30;  // MPI counts in int

}  // namespace

/// Calls start(first, count, request) for parts of `n` that MPI can count, and waits for each.
template <class Start>
void MpiCollectives::in_parts(size_t n, const char* call, const Start& start) {
  for (size_t first = 0; first < n; first += kMost) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_call(start(first, static_cast<int>(std::min(kMost, n - first)), &request), call);
    InFlight flight;
    flight.adopt(request);
    if (!flight.wait(comm_.deadline())) comm_.give_up_on(-1);
  }
}

void MpiCollectives::broadcast(Context&, int root, Bytes data) {
  in_parts(data.size(), "MPI_Ibcast", [&](size_t first, int count, MPI_Request* request) {
    return MPI_Ibcast(data.data() + first, count, MPI_BYTE, root, MPI_COMM_WORLD, request);
  });
}

void MpiCollectives::reduce(Context&, int root, std::span<float> data) {
  const bool here = comm_.rank() == root;
  in_parts(data.size(), "MPI_Ireduce", [&](size_t first, int count, MPI_Request* request) {
    float* part = data.data() + first;
    return MPI_Ireduce(here ? MPI_IN_PLACE : part, here ? part : nullptr, count, MPI_FLOAT, MPI_SUM,
                       root, MPI_COMM_WORLD, request);
  });
}

void MpiCollectives::allreduce(Context&, std::span<float> data) {
  in_parts(data.size(), "MPI_Iallreduce", [&](size_t first, int count, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data.data() + first, count, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD, request);
  });
}

}  // namespace tw::mpi
