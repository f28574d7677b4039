#include "comm/transports.h"

#include <cstdlib>

namespace tw {

bool started_by_mpi() {
  // MPICH and Intel MPI (hydra, srun); Open MPI; any PMIx launcher
  for (const char* name : {"PMI_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK"})
    if (std::getenv(name) != nullptr) return true;
  return false;
}

MpiTransport& mpi_transport() {
  static MpiTransport transport;
  return transport;
}

std::unique_ptr<Communicator> make_mpi_communicator(const MpiOptions& options) {
  check(mpi_transport().make != nullptr,
        "[mpi] this program was built without MPI; build it with WITH_MPI=ON, or start it without "
        "mpirun and give it --workers");
  return mpi_transport().make(options);
}

NcclTransport& nccl_transport() {
  static NcclTransport transport = nullptr;
  return transport;
}

std::string what_nccl_lacks() {
  if (nccl_transport() == nullptr)
    return "this build has no NCCL transport; build with WITH_CUDA=ON where NCCL is found";
  return what_is_missing(Device::cuda);
}

std::unique_ptr<Communicator> make_nccl_communicator(Context& ctx, Communicator& bootstrap,
                                                     std::string& notice) {
  const std::string missing = what_nccl_lacks();
  check(missing.empty(), "[nccl] {}", missing);
  return nccl_transport()(ctx, bootstrap, notice);
}

int finish_mpi(int code) {
  return mpi_transport().finish == nullptr ? code : mpi_transport().finish(code);
}

}  // namespace tw
