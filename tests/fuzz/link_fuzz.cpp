// Links of a file: any bytes give times of messages and of computing, or a UserError.
#include <cstdlib>

#include "comm/link/topology.h"
#include "engine/core/error.h"
#include "tests/fuzz/support/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tw::fuzz::InputFolder folder("link");
  folder.write("link.json", {reinterpret_cast<const char*>(data), size});
  try {
    const tw::Topology link = tw::parse_link(folder.path() / "link.json");
    const tw::LinkCost cost = link.cost(8);
    for (const double seconds : {cost.alpha, cost.beta, link.delay(1, 0, 9), link.slowest(8)})
      if (!(seconds >= 0)) std::abort();
  } catch (const tw::UserError&) {
  }
  return 0;
}
