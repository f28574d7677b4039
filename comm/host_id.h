// HostId: tells machines apart.
#pragma once

#include <array>
#include <fstream>

namespace tw {

/// The boot id of the kernel: equal for all processes of one machine, also in containers; different
/// on any two machines.
using HostId = std::array<char, 36>;

inline HostId this_host() {
  HostId id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), id.size());
  return id;
}

}  // namespace tw
