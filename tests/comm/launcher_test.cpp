// The launcher of a process, and processes that a launcher of another MPI started.
#include "comm/launcher.h"

#include <gtest/gtest.h>

#include <map>

#include "engine/core/error.h"

namespace tw::test {
namespace {

using Variables = std::map<std::string, std::string>;

std::optional<Launcher> launcher_in(const Variables& variables) {
  return find_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

/// The error of a world of `ranks`; empty if there is none.
std::string error_of(const Variables& variables, int ranks, const std::string& library = "MPICH") {
  try {
    check_launcher(launcher_in(variables), ranks, library);
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

const Variables kOpenMpi{{"OMPI_COMM_WORLD_RANK", "3"},
                         {"OMPI_COMM_WORLD_SIZE", "4"},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"PMIX_RANK", "3"}};
const Variables kHydra{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "2"}};
const Variables kSlurm{
    {"SLURM_PROCID", "2"}, {"SLURM_NTASKS", "4"}, {"SLURM_TASKS_PER_NODE", "2(x2)"}};

TEST(Launcher, IsFoundByItsVariables) {
  EXPECT_FALSE(launcher_in({}));
  EXPECT_EQ(launcher_in(kOpenMpi)->rank, 3);
  EXPECT_EQ(launcher_in(kHydra)->rank, 1);
  EXPECT_EQ(launcher_in(kSlurm)->rank, 2);
  for (const Variables& variables : {kOpenMpi, kHydra, kSlurm}) {
    EXPECT_EQ(launcher_in(variables)->ranks, 4);
    EXPECT_EQ(launcher_in(variables)->local_ranks, 2);
  }
  EXPECT_TRUE(launcher_in(kOpenMpi)->for_mpi);
  EXPECT_TRUE(launcher_in(kHydra)->for_mpi);
  EXPECT_FALSE(launcher_in(kSlurm)->for_mpi);
}

TEST(Launcher, MpirunInsideASlurmJobComesFirst) {
  Variables both = kHydra;
  both.insert(kSlurm.begin(), kSlurm.end());
  both["PMI_SIZE"] = "1";
  EXPECT_EQ(launcher_in(both)->ranks, 1);
  EXPECT_EQ(error_of(both, 1), "");
}

TEST(Launcher, ProcessesThatAreAloneAreRefused) {
  for (const auto& [variables, name] :
       {std::pair{kOpenMpi, "mpirun of Open MPI"}, {kHydra, "mpirun of MPICH"}, {kSlurm, "srun"}}) {
    const std::string error = error_of(variables, 1, "MPICH Version: 4.0.2");
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error.find("started 4 processes"), std::string::npos) << error;
    EXPECT_NE(error.find("MPICH Version: 4.0.2"), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    EXPECT_EQ(error_of(variables, 4), "") << name;
  }
  EXPECT_NE(error_of(kSlurm, 1).find("srun --mpi=pmi2"), std::string::npos);
  EXPECT_NE(error_of(kSlurm, 1, "").find("built without MPI"), std::string::npos);
}

TEST(Launcher, ARankAbove0IsNotAlone) {
  const std::string error = error_of({{"PMIX_RANK", "1"}}, 1);
  EXPECT_NE(error.find("a PMIx launcher started several processes"), std::string::npos) << error;
  EXPECT_EQ(error_of({{"PMIX_RANK", "0"}}, 1), "");
}

TEST(Launcher, ABatchScriptOfSlurmMayBeAlone) {
  Variables script = kSlurm, step = kSlurm;
  EXPECT_TRUE(launcher_in(step)->one_of_several);
  script["SLURM_PROCID"] = step["SLURM_PROCID"] = "0";
  step["SLURM_STEP_NUM_TASKS"] = "4";
  EXPECT_FALSE(launcher_in(script)->one_of_several);
  EXPECT_TRUE(launcher_in(step)->one_of_several);
}

TEST(Launcher, OneProcessMayBeAlone) {
  EXPECT_EQ(error_of({}, 1), "");
  EXPECT_EQ(error_of({{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_SIZE", "1"}}, 1), "");
  EXPECT_EQ(error_of({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}}, 1), "");
}

}  // namespace
}  // namespace tw::test
