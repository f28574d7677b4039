// The end of a run under MPI, or of one run of a sweep. Implementation header of the MPI transport.
#pragma once

#include <string>

namespace tw::mpi {

/// Whether MPI is initialised and not yet finalised.
bool running();
/// finish_mpi() of comm/transports.h.
int finish(int code, const std::string& error, double seconds);
/// meet_mpi() of comm/transports.h.
bool meet(double seconds);
/// Ends all ranks at once, this one included, so that mpirun returns `code`.
[[noreturn]] void end_all_ranks(int code);

}  // namespace tw::mpi
