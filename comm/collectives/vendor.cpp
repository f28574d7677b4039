// The collectives of a transport's library (MPI, NCCL), for comparison. The library chooses what it
// sends; bytes_sent() does not count it.

#include "comm/collectives/vendor.h"

#include "comm/collectives/collectives.h"

tw::VendorCollectives& tw::vendor_of(Communicator& comm) {
  VendorCollectives* const vendor = comm.vendor();
  check(vendor != nullptr,
        "[vendor] a library's own collectives need all ranks of mpirun or of NCCL, without an "
        "emulated link; this run's transport is {}",
        comm.transport());
  return *vendor;
}

namespace tw::vendor {
namespace {

constexpr const char* kName = "vendor";

void vendor_broadcast(Context& ctx, Communicator& comm, int root, Bytes data) {
  const OperationScope operation(comm, kName);
  vendor_of(comm).broadcast(ctx, root, data);
}

void vendor_reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
                   std::span<float>) {
  const OperationScope operation(comm, kName);
  vendor_of(comm).reduce(ctx, root, data);
}

void vendor_allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float>) {
  const OperationScope operation(comm, kName);
  vendor_of(comm).allreduce(ctx, data);
}

constexpr const char* kHelp = "the collective of the MPI library or of NCCL";

template <class Run>
Collective<Run> by_library(Run run) {
  return {.make = [run](const Settings&) { return run; }, .by_library = true};
}

const bool vendor_registered =
    broadcasts().add({kName, kHelp, by_library<Broadcast>(vendor_broadcast), {}, {"native"}}) &&
    reduces().add({kName, kHelp, by_library<Reduce>(vendor_reduce), {}, {"native"}}) &&
    allreduces().add({kName, kHelp, by_library<Allreduce>(vendor_allreduce), {}, {"native"}});

}  // namespace
}  // namespace tw::vendor
