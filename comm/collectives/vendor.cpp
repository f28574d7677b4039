// The collectives of the library behind a transport (MPI's, NCCL's), to compare with. What they
// put on the wire is the library's choice; bytes_sent() does not count it.

#include "comm/collectives/vendor.h"

#include "comm/collectives/collectives.h"

namespace tw {
namespace {

NativeCollectives& native_of(Communicator& comm) {
  NativeCollectives* const native = comm.native();
  check(native != nullptr,
        "[native] a library's own collectives need all ranks of mpirun or of NCCL, without an "
        "emulated link; this run's transport is {}",
        comm.transport());
  return *native;
}

void native_broadcast(Context& ctx, Communicator& comm, int root, Bytes data) {
  const Doing doing(comm, "native");
  native_of(comm).broadcast(ctx, root, data);
}

void native_reduce(Context& ctx, Communicator& comm, int root, std::span<float> data,
                   std::span<float>) {
  const Doing doing(comm, "native");
  native_of(comm).reduce(ctx, root, data);
}

void native_allreduce(Context& ctx, Communicator& comm, std::span<float> data, std::span<float>) {
  const Doing doing(comm, "native");
  native_of(comm).allreduce(ctx, data);
}

constexpr const char* kHelp = "the MPI library's or NCCL's own";

const bool registered =
    broadcasts().add(
        {"native", kHelp, [](const Settings&) -> Broadcast { return native_broadcast; }}) &&
    reduces().add({"native", kHelp, [](const Settings&) -> Reduce { return native_reduce; }}) &&
    allreduces().add(
        {"native", kHelp, [](const Settings&) -> Allreduce { return native_allreduce; }});

}  // namespace
}  // namespace tw
