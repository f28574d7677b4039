#include "comm/launcher.h"

#include <cstdlib>

#include "engine/core/error.h"

namespace tw {

namespace {

/// The variables of a launcher: rank of the process, number of processes, and of those on the same
/// machine.
struct Variables {
  const char *name, *rank, *ranks, *local_ranks;
  bool for_mpi;
};
constexpr Variables kLaunchers[] = {
    {"mpirun of Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE", true},
    {"mpirun of MPICH or Intel MPI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", true},
    {"a PMIx launcher", "PMIX_RANK", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", true},
    {"srun", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_TASKS_PER_NODE", false},
};

int number(const char* text) { return text ? std::atoi(text) : 0; }

}  // namespace

std::optional<Launcher> find_launcher(const Environment& environment) {
  for (const Variables& known : kLaunchers) {
    const char* present = environment(known.for_mpi ? known.rank : known.ranks);
    if (!present) continue;
    Launcher launcher{.name = known.name,
                      .rank = number(environment(known.rank)),
                      .ranks = number(environment(known.ranks)),
                      .local_ranks = number(environment(known.local_ranks)),
                      .for_mpi = known.for_mpi};
    const int certain =
        known.for_mpi ? launcher.ranks : number(environment("SLURM_STEP_NUM_TASKS"));
    launcher.one_of_several = certain > 0 ? certain > 1 : launcher.rank > 0;
    return launcher;
  }
  return std::nullopt;
}

std::optional<Launcher> find_launcher() {
  // Open MPI changes the variables when it starts
  static const std::optional<Launcher> found =
      find_launcher([](const char* name) -> const char* { return std::getenv(name); });
  return found;
}

void check_launcher(const std::optional<Launcher>& launcher, int world_ranks,
                    const std::string& library) {
  if (!launcher || world_ranks > 1) return;
  if (launcher->ranks <= 1 && !launcher->one_of_several) return;
  const std::string processes =
      launcher->ranks > 1 ? fmt::format("{} processes", launcher->ranks) : "several processes";
  const std::string built = library.empty() ? "this program is built without MPI"
                                            : "this program is built with " + library;
  const std::string cure =
      launcher->for_mpi
          ? "use the mpirun of the MPI that it is built with (on Debian mpirun.mpich or "
            "mpirun.openmpi), or build it with -D WITH_MPI=MPICH or OPENMPI"
          : "use mpirun, or srun --mpi=pmi2 or pmix; for a single process, unset SLURM_NTASKS";
  throw UserError(fmt::format("[mpi] {} started {}, but {}, so each would train alone; {}",
                              launcher->name, processes, built, cure));
}

}  // namespace tw
