#include "comm/collectives/collectives.h"

namespace tw {

Registry<Collective<Broadcast>>& broadcasts() {
  static Registry<Collective<Broadcast>> registry("broadcast");
  return registry;
}

Registry<Collective<Reduce>>& reduces() {
  static Registry<Collective<Reduce>> registry("reduce");
  return registry;
}

Registry<Collective<Allreduce>>& allreduces() {
  static Registry<Collective<Allreduce>> registry("allreduce");
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

Settings collective_settings() {
  Settings settings;
  declare(settings, broadcasts(), reduces(), allreduces());
  return settings;
}

}  // namespace tw
