// Which machine this is.
#pragma once

#include <array>
#include <fstream>

namespace tw {

/// Equal on all processes of one machine, in containers, too; never on two machines.
using MachineId = std::array<char, 36>;

inline MachineId this_machine() {
  MachineId id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), id.size());
  return id;
}

}  // namespace tw
