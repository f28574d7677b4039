// HostId: tells machines apart.
#pragma once

#include <unistd.h>

#include <array>
#include <fstream>
#include <string>

namespace tw {

/// The boot id of the kernel: equal for all processes of one machine, also in containers; different
/// on any two machines.
using HostId = std::array<char, 36>;

inline HostId this_host() {
  HostId id{};
  std::ifstream("/proc/sys/kernel/random/boot_id").read(id.data(), id.size());
  return id;
}

/// The name of this machine for people; containers have names of their own.
inline std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace tw
