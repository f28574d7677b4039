// Checks of a machine: each returns findings.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "engine/core/dtype.h"

namespace tw {

/// `note`: works, but worth knowing. `problem`: does not work as it should.
enum class State { ok, note, problem };

struct Finding {
  std::string name;  ///< `memory`
  State state = State::ok;
  std::string text{};
  std::string cure{};                        ///< what to do; empty if all is well
  nlohmann::ordered_json details = nullptr;  ///< the same as numbers and names, for programs
};
using Findings = std::vector<Finding>;

struct DoctorConfig {
  std::string data_dir, output_dir = "runs", link;
  int64_t workers = 0;
  double seconds = 10;  ///< of training steps; 0: none
  bool json = false;
};

/// What a check may look at.
struct Checkup {
  const DoctorConfig& config;
  Communicator& comm;  ///< of all ranks, over the emulated link if there is one
  Device device;       ///< on which training would compute
  int local_ranks;     ///< ranks on this machine
};

struct Check {
  const char* name;
  Findings (*run)(const Checkup& checkup);
  bool by_all_ranks = false;  ///< else by one rank of each machine
};

Findings check_cpu(const Checkup& checkup);
Findings check_cores(const Checkup& checkup);
Findings check_memory(const Checkup& checkup);
Findings check_mpi(const Checkup& checkup);
Findings check_gpu(const Checkup& checkup);
Findings check_disk(const Checkup& checkup);
Findings check_data(const Checkup& checkup);
Findings check_link(const Checkup& checkup);
Findings check_step(const Checkup& checkup);

/// In the order of the report. A new check is a row here.
inline const std::vector<Check>& checks() {
  static const std::vector<Check> all{
      {"cpu", check_cpu},   {"cores", check_cores},     {"memory", check_memory},
      {"mpi", check_mpi},   {"gpu", check_gpu},         {"disk", check_disk},
      {"data", check_data}, {"link", check_link, true}, {"step", check_step, true}};
  return all;
}

}  // namespace tw
