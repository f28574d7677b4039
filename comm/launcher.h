// Launcher: what started this process, by the environment variables that it set.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace tw {

struct Launcher {
  std::string name;     ///< `mpirun of Open MPI`, `mpirun of MPICH`, `srun`, ...
  int rank = 0;         ///< of this process
  int ranks = 0;        ///< processes that it started; 0: unknown
  int local_ranks = 0;  ///< those on this machine; 0: unknown
  /// Whether it offers MPI libraries a protocol to find the other ranks. srun may not.
  bool for_mpi = true;
  /// Whether it has certainly started other processes, too. The variables of a Slurm job are also
  /// set in its batch script, which is a single process.
  bool one_of_several = false;
};

using Environment = std::function<const char*(const char* name)>;

/// The launcher of this process; none if it was started by itself. An MPI launcher inside a Slurm
/// job comes before srun, whose variables it passes on.
std::optional<Launcher> find_launcher(const Environment& environment);
/// By the variables that the process began with.
std::optional<Launcher> find_launcher();

/// UserError if the launcher started several processes and each is alone, because `library`, the
/// name of the MPI library of this build (empty: none), did not find the others.
void check_launcher(const std::optional<Launcher>& launcher, int world_ranks,
                    const std::string& library);

}  // namespace tw
