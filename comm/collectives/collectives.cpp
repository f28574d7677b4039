#include "comm/collectives/collectives.h"

namespace tw {

Registry<std::function<Broadcast(const Settings&)>>& broadcasts() {
  static Registry<std::function<Broadcast(const Settings&)>> registry("broadcast");
  return registry;
}

Registry<std::function<Reduce(const Settings&)>>& reduces() {
  static Registry<std::function<Reduce(const Settings&)>> registry("reduce");
  return registry;
}

Registry<std::function<Allreduce(const Settings&)>>& allreduces() {
  static Registry<std::function<Allreduce(const Settings&)>> registry("allreduce");
  return registry;
}

void broadcast(Communicator& comm, int root, Bytes data) {
  broadcast(comm.host(), comm, root, data);
}

void barrier(Communicator& comm) { barrier(comm.host(), comm); }

void allgather(Communicator& comm, ConstBytes mine, size_t expected, GatheredBlocks& blocks,
               size_t most) {
  allgather(comm.host(), comm, mine, expected, blocks, most);
}

void allreduce(Communicator& comm, std::span<float> data) {
  std::vector<float> scratch(data.size());
  allreduces().find("ring").value({})(comm.host(), comm, data, scratch);
}

Settings collective_settings() {
  Settings settings;
  declare(settings, broadcasts(), reduces(), allreduces());
  return settings;
}

}  // namespace tw
