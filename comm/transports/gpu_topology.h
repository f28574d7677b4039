// Which rank computes on which GPU, and whether each has one for itself.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_id.h"

namespace tw {

/// A GPU among all machines.
struct GpuPlace {
  HostId machine{};
  std::array<char, 20> bus{};  ///< on the PCI bus, as text that ends in 0: 0000:1b:00.0
};

/// Two ranks on one GPU.
struct SharedGpu {
  int first, second;
};
/// The lowest ranks that share a GPU; nothing when every rank has its own.
std::optional<SharedGpu> shared_gpu(std::span<const GpuPlace> places);
/// The one line that says so, and that messages go over `instead`.
std::string shared_gpu_notice(SharedGpu shared, std::span<const GpuPlace> places,
                              const char* instead);

/// How many of the ranks below `rank` run on its machine.
int local_rank(std::span<const HostId> machines, int rank);

/// The number of this rank's GPU when ranks on one machine take turns on its `gpus`. Collective.
int gpu_in_turn(Context& ctx, Communicator& comm, int gpus);
/// Every rank's place. Collective.
std::vector<GpuPlace> gather_places(Context& ctx, Communicator& comm, const std::string& bus);

}  // namespace tw
