// MachineLoad: whether a measurement had the machine for itself.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_id.h"

namespace tw {

/// Measures the CPU time that other programs take on the machines of the ranks.
class MachineLoad {
 public:
  /// Starts measuring.
  MachineLoad();

  /// Cores that other programs used, of those that the ranks may use, less those that the threads
  /// of the ranks leave idle, on the machine where they used most; 0 if unknown. Collective.
  double cores_taken(Communicator& comm, int threads_per_rank) const;

  struct Notes {
    bool busy = false;  ///< other programs used more than a tenth of a core on some machine
    std::vector<std::string> lines{};
  };
  /// One line for each thing that makes the measured seconds misleading: a busy machine, or one
  /// whose ranks have more threads than it has cores. Reads /proc/stat; without it, nothing is
  /// known about other programs. Collective.
  Notes notes(Communicator& comm, int threads_per_rank) const;

 private:
  struct Machine {
    double busy = 0, own = 0, wall = 0;  // seconds since the start
    int64_t cores = 1, ranks = 0;
    double others() const { return wall > 0 ? (busy - own) / wall : 0; }
  };
  /// Those of the ranks. Collective.
  std::map<HostId, Machine> machines(Communicator& comm) const;

  double busy_, own_, wall_;  // seconds at the start
};

}  // namespace tw
