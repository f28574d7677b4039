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

std::unique_ptr<Communicator> make_mpi_communicator(size_t block_bytes) {
  check(mpi_transport().make != nullptr,
        "[mpi] this program was built without MPI; build it with WITH_MPI=ON, or start it without "
        "mpirun and give it --workers");
  return mpi_transport().make(block_bytes);
}

int finish_mpi(int code) {
  return mpi_transport().finish == nullptr ? code : mpi_transport().finish(code);
}

}  // namespace tw
