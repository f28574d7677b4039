// Which machine this is.
#pragma once

#include <array>
#include <fstream>

namespace tw {

/// Equal on all processes of one machine, in containers, too; never on two machines.
using HostId = std::array<char, 36>;

inline HostId this_host() {
  HostId id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), id.size());
  return id;
}

}  // namespace tw
