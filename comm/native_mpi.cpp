// The MPI library's own collectives, to compare with. Started non-blocking and waited for like any
// message here, because MPI's blocking calls keep a core busy while they wait.
// What they put on the wire is the library's choice; bytes_sent() does not count it.

#include <mpi.h>

#include <algorithm>
#include <string_view>

#include "comm/collectives.h"
#include "comm/exactly.h"
#include "comm/in_flight_mpi.h"

namespace tw::mpi {
namespace {

constexpr size_t kMost = size_t{1} << 30;  // MPI counts in int

void check_transport(const Communicator& comm) {
  check(std::string_view(comm.transport()) == "mpi",
        "[native] the MPI library's collectives need ranks started by mpirun, without an emulated "
        "link; this run's transport is {}",
        comm.transport());
  int ranks = 0;
  check_call(MPI_Comm_size(MPI_COMM_WORLD, &ranks), "MPI_Comm_size");
  check(comm.size() == ranks,
        "[native] the MPI library's collectives are for all {} ranks of mpirun; these are {}",
        ranks, comm.size());
}

/// Calls start(first, count, request) for parts of `n` that MPI can count, and waits for each.
template <class Start>
void in_parts(Communicator& comm, size_t n, const char* call, const Start& start) {
  const Doing doing(comm, "native");
  for (size_t first = 0; first < n; first += kMost) {
    MPI_Request request = MPI_REQUEST_NULL;
    check_call(start(first, static_cast<int>(std::min(kMost, n - first)), &request), call);
    InFlight flight;
    flight.adopt(request);
    if (!flight.wait(comm.deadline())) comm.give_up_on(-1);
  }
}

void native_broadcast(Context&, Communicator& comm, int root, Bytes data) {
  check_transport(comm);
  in_parts(comm, data.size(), "MPI_Ibcast", [&](size_t first, int count, MPI_Request* request) {
    return MPI_Ibcast(data.data() + first, count, MPI_BYTE, root, MPI_COMM_WORLD, request);
  });
}

void native_reduce(Context&, Communicator& comm, int root, std::span<float> data,
                   std::span<float>) {
  check_transport(comm);
  const bool here = comm.rank() == root;
  in_parts(comm, data.size(), "MPI_Ireduce", [&](size_t first, int count, MPI_Request* request) {
    float* part = data.data() + first;
    return MPI_Ireduce(here ? MPI_IN_PLACE : part, here ? part : nullptr, count, MPI_FLOAT, MPI_SUM,
                       root, MPI_COMM_WORLD, request);
  });
}

void native_allreduce(Context&, Communicator& comm, std::span<float> data, std::span<float>) {
  check_transport(comm);
  in_parts(comm, data.size(), "MPI_Iallreduce", [&](size_t first, int count, MPI_Request* request) {
    return MPI_Iallreduce(MPI_IN_PLACE, data.data() + first, count, MPI_FLOAT, MPI_SUM,
                          MPI_COMM_WORLD, request);
  });
}

constexpr const char* kHelp = "the MPI library's own; under mpirun only";

const bool registered =
    broadcasts().add(
        {"native", kHelp, [](const Settings&) -> Broadcast { return native_broadcast; }}) &&
    reduces().add({"native", kHelp, [](const Settings&) -> Reduce { return native_reduce; }}) &&
    allreduces().add(
        {"native", kHelp, [](const Settings&) -> Allreduce { return native_allreduce; }});

}  // namespace
}  // namespace tw::mpi
