// MachineLoad: whether a measurement had the machine for itself.
#pragma once

#include <string>
#include <vector>

#include "comm/communicator.h"

namespace tw {

/// Measures the CPU time that other programs take on the machines of the ranks.
class MachineLoad {
 public:
  /// Starts measuring.
  MachineLoad();

  /// One line for each thing that makes the measured seconds misleading: other programs used more
  /// than a tenth of a core on some machine, or its ranks have more threads than it has cores.
  /// Reads /proc/stat; without it, nothing is known about other programs. Collective.
  std::vector<std::string> notes(Communicator& comm, int threads_per_rank) const;

 private:
  double busy_, own_, wall_;  // seconds at the start
};

}  // namespace tw
