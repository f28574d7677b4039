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

Settings collective_settings() {
  Settings settings;
  declare(settings, broadcasts(), reduces(), allreduces());
  return settings;
}

}  // namespace tw
