#include "comm/collectives.h"

namespace tw {

Registry<Allreduce>& allreduces() {
  static Registry<Allreduce> registry("allreduce");
  return registry;
}

}  // namespace tw
