// The MPI transport's communicator. Implementation header, for tests that need other block sizes.
#pragma once

#include <memory>

#include "comm/communicator.h"

namespace tw::mpi {

struct MpiOptions {
  size_t block_bytes = size_t{1} << 30;  ///< longer messages travel in blocks: MPI counts in int
  size_t stage_bytes = size_t{4} << 20;  ///< a pinned block, where MPI cannot take GPU memory
  bool stage_all = false;                ///< host memory travels through pinned blocks, too
};
/// make_mpi_communicator() of comm/transports.h.
std::unique_ptr<Communicator> make_communicator(const MpiOptions& options = {});

}  // namespace tw::mpi
