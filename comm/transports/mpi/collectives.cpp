// Uses MPI's non-blocking collectives and waits for them as for messages: the blocking calls keep a
// core busy while they wait.

#include "comm/transports/mpi/collectives.h"

#include <algorithm>

#include "comm/on_device.h"
#include "comm/transports/mpi/mpi_c.h"
#include "comm/transports/mpi/requests.h"

namespace tw::mpi {
namespace {

constexpr size_t kMost = size_t{1} << 30;  // MPI counts in int

std::span<float> floats(Bytes data) {
  return {reinterpret_cast<float*>(data.data()), data.size() / sizeof(float)};
}

}  // namespace

/// Calls body with `data`, or with one block of it after the other, in memory that MPI can access.
/// Open MPI's non-blocking reductions cannot read that of a GPU (open-mpi/ompi issue 9845).
void MpiCollectives::within_reach(Context& ctx, Bytes data, bool reduces,
                                  const std::function<void(Bytes)>& body) {
  if (!lies_on_device(ctx, data)) return body(data);
  if (reduces || !takes_device_memory()) return staged_.in_blocks(ctx, data, body);
  ctx.synchronize();  // MPI does not wait for streams
  body(data);
}

/// Calls start(first, count, request) for parts of `n` that fit in MPI's int, and waits for each.
template <class Start>
void MpiCollectives::in_parts(size_t n, const char* call, const Start& start) {
  for (size_t first = 0; first < n; first += kMost) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_call(start(first, static_cast<int>(std::min(kMost, n - first)), &request), call);
    MpiRequests flight;
    flight.adopt(request);
    WaitLimit limit = comm_.wait_limit();
    if (!flight.wait(limit)) comm_.throw_timeout(-1);
  }
}

void MpiCollectives::broadcast(Context& ctx, int root, Bytes all) {
  within_reach(ctx, all, false, [&](Bytes data) {
    in_parts(data.size(), "MPI_Ibcast", [&](size_t first, int count, MPI_Request* request) {
      return MPI_Ibcast(data.data() + first, count, MPI_BYTE, root, MPI_COMM_WORLD, request);
    });
  });
}

void MpiCollectives::reduce(Context& ctx, int root, std::span<float> all) {
  const bool here = comm_.rank() == root;
  within_reach(ctx, std::as_writable_bytes(all), true, [&](Bytes data) {
    const std::span<float> x = floats(data);
    in_parts(x.size(), "MPI_Ireduce", [&](size_t first, int count, MPI_Request* request) {
      float* part = x.data() + first;
      return MPI_Ireduce(here ? MPI_IN_PLACE : part, here ? part : nullptr, count, MPI_FLOAT,
                         MPI_SUM, root, MPI_COMM_WORLD, request);
    });
  });
}

void MpiCollectives::allreduce(Context& ctx, std::span<float> all) {
  within_reach(ctx, std::as_writable_bytes(all), true, [&](Bytes data) {
    const std::span<float> x = floats(data);
    in_parts(x.size(), "MPI_Iallreduce", [&](size_t first, int count, MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, x.data() + first, count, MPI_FLOAT, MPI_SUM,
                            MPI_COMM_WORLD, request);
    });
  });
}

}  // namespace tw::mpi
