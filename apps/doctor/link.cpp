// The link between neighbouring ranks.
#include "apps/doctor/checkup.h"
#include "comm/collectives/measure_link.h"

namespace tw {

Findings check_link(const Checkup& checkup) {
  Communicator& comm = checkup.comm;
  Finding found{.name = "link"};
  if (comm.size() == 1) {
    found.state = State::note;
    found.text = "not measured: there is one rank";
    found.cure =
        "mpirun -n 4 thinwire doctor measures between processes, also on several "
        "machines; --workers 4 between threads";
    return {found};
  }
  Context ctx;
  const LinkCost cost = measure_link(ctx, comm);
  const double rate = 8 * sizeof(float) / cost.beta;
  found.text = fmt::format("{} ranks, {}: {:.3g} ms a message, {:.3g} Gbit/s on the slowest link",
                           comm.size(), comm.transport(), 1e3 * cost.alpha, 1e-9 * rate);
  found.details = {{"ranks", comm.size()},
                   {"transport", comm.transport()},
                   {"latency_seconds", cost.alpha},
                   {"bits_per_second", rate}};
  return {found};
}

}  // namespace tw
