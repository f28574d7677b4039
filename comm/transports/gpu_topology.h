// The GPU of each rank, and whether ranks share one.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/communicator.h"
#include "comm/host_id.h"

namespace tw {

/// A GPU, among those of all machines.
struct GpuLocation {
  HostId machine{};
  std::array<char, 20> bus{};  ///< PCI address, zero-terminated: 0000:1b:00.0
};

/// Two ranks on one GPU.
struct SharedGpu {
  int first, second;
};
/// The lowest ranks that share a GPU; nullopt when every rank has its own.
std::optional<SharedGpu> shared_gpu(std::span<const GpuLocation> gpus);
/// One line for the user: the two ranks share a GPU, and messages go over `instead`.
std::string shared_gpu_notice(SharedGpu shared, std::span<const GpuLocation> gpus,
                              const char* instead);

/// The number of ranks below `rank` that run on its machine.
int local_rank(std::span<const HostId> machines, int rank);

/// The number of this rank's GPU: its local rank modulo `gpus`, the number of GPUs of the machine.
/// Collective.
int gpu_in_turn(Context& ctx, Communicator& comm, int gpus);
/// The GPU of each rank, by rank; `bus`: the PCI address of this rank's. Collective.
std::vector<GpuLocation> gather_gpus(Context& ctx, Communicator& comm, const std::string& bus);

}  // namespace tw
