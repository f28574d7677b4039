#include "comm/transports/gpu_topology.h"

#include <algorithm>

#include "comm/collectives/collectives.h"

namespace tw {

std::optional<SharedGpu> shared_gpu(std::span<const GpuLocation> gpus) {
  const int ranks = static_cast<int>(gpus.size());
  for (int first = 0; first < ranks; ++first)
    for (int second = first + 1; second < ranks; ++second)
      if (gpus[first].machine == gpus[second].machine && gpus[first].bus == gpus[second].bus)
        return SharedGpu{first, second};
  return std::nullopt;
}

std::string shared_gpu_notice(SharedGpu shared, std::span<const GpuLocation> gpus,
                              const char* instead) {
  return fmt::format(
      "nccl: ranks {} and {} share the GPU at {}, and NCCL wants one for each rank: "
      "messages go over {} instead",
      shared.first, shared.second, gpus[shared.first].bus.data(), instead);
}

int local_rank(std::span<const HostId> machines, int rank) {
  const auto lower = machines.first(static_cast<size_t>(rank));
  return static_cast<int>(std::ranges::count(lower, machines[rank]));
}

int gpu_in_turn(Context& ctx, Communicator& comm, int gpus) {
  const auto machines = gather(ctx, comm, this_host());
  return local_rank(machines, comm.rank()) % gpus;
}

std::vector<GpuLocation> gather_gpus(Context& ctx, Communicator& comm, const std::string& bus) {
  GpuLocation mine{.machine = this_host()};
  std::ranges::copy(bus.substr(0, mine.bus.size() - 1), mine.bus.begin());
  std::vector<GpuLocation> all = gather(ctx, comm, mine);
  for (GpuLocation& gpu : all) gpu.bus.back() = '\0';  // the others' bytes may lack it
  return all;
}

}  // namespace tw
