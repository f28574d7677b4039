// The collectives of the library behind a transport (MPI's, NCCL's), to compare with. What they
// put on the wire is the library's choice; bytes_sent() does not count it.

#include "comm/collectives/vendor.h"

#include "comm/collectives/collectives.h"

namespace tw {
namespace {

VendorCollectives& vendor_of(Communicator& comm) {
  VendorCollectives* const native = comm.vendor();
  check(native != nullptr,
        "[native] a library's own collectives need all ranks of mpirun or of NCCL, without an "
        "emulated link; this run's transport is {}",
        comm.transport());
  return *native;
}

void vendor_broadcast(Context& ctx, Communicator& comm, int root, Bytes data) {
  const OperationScope doing(comm, "native");
  vendor_of(comm).broadcast(ctx, root, data);
}

void vendor_reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
                   std::span<float>) {
  const OperationScope doing(comm, "native");
  vendor_of(comm).reduce(ctx, root, data);
}

void vendor_allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float>) {
  const OperationScope doing(comm, "native");
  vendor_of(comm).allreduce(ctx, data);
}

constexpr const char* kHelp = "the MPI library's or NCCL's own";

const bool registered =
    broadcasts().add(
        {"native", kHelp, [](const Settings&) -> Broadcast { return vendor_broadcast; }}) &&
    reduces().add({"native", kHelp, [](const Settings&) -> Reduce { return vendor_reduce; }}) &&
    allreduces().add(
        {"native", kHelp, [](const Settings&) -> Allreduce { return vendor_allreduce; }});

}  // namespace
}  // namespace tw
