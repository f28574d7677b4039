// Ends an MPI run in different ways, for tests/comm/transports/mpi/shutdown_test.sh:
// mpirun -n P mpi_shutdown WAY [program]; `program`: as the programs of apps/ do

#include <csignal>
#include <cstdio>
#include <string_view>
#include <vector>

#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "comm/collectives/collectives.h"
#include "comm/transports.h"

using namespace tw;

namespace {

/// Sends messages between all ranks, so that connections exist.
void talk(Context& ctx, Communicator& comm) {
  std::vector<float> data(100000, 1.0f), scratch(data.size());
  allreduces().find("ring").value({})(ctx, comm, data, scratch);
  check<Fault>(data.back() == static_cast<float>(comm.size()), "[test] wrong sum");
}

void end(std::string_view way, Context& ctx, Communicator& comm) {
  const bool last = comm.rank() == comm.size() - 1;
  if (way == "all_mistaken") throw UserError("[test] a mistake on all ranks");
  if (way == "all_faulty") throw CollectiveFault("[test] a fault on all ranks");
  if (way == "one_mistaken" && last) throw UserError("[test] a mistake on one rank");
  if (way == "one_faulty" && last) throw CollectiveFault("[test] a fault on one rank");
  if (way == "last_faulty" && last) throw CollectiveFault("[test] a fault at the end");
  if (way.ends_with("_in_sweep")) {
    comm.set_timeout(way == "one_in_sweep" ? 2 : 60);
    const std::string fault = common_fault_of(comm, [&] {
      if (way == "all_in_sweep" || last) throw CollectiveFault("[test] a fault in a run");
      comm.receive(ctx, comm.size() - 1, {});
    });
    check<Fault>(fault == "[test] a fault in a run", "[test] the fault is {}", fault);
    talk(ctx, comm);  // the next run
    return;
  }
  if (way == "frozen") {
    comm.set_timeout(1);
    if (last) std::raise(SIGSTOP);
    return;
  }
  if (way.starts_with("one_") || way == "abort") {
    if (way == "abort" && last) comm.abort("test");
    comm.receive(ctx, comm.size() - 1, {});  // never comes
  }
  if (way == "mixed" && last) throw UserError("[test] a mistake here");
  if (way == "mixed") throw CollectiveFault("[test] a fault there");
  if (way == "killed" && last) std::raise(SIGKILL);
  if (way == "killed") comm.receive(ctx, comm.size() - 1, {});
}

}  // namespace

int main(int arguments, char** argv) {
  const auto body = [&](Communicator& comm) {
    Context ctx;
    talk(ctx, comm);
    std::puts("talked");
    end(argv[1], ctx, comm);
    return 0;
  };
  if (arguments > 2) return run_program(nullptr, body);
  const auto comm = make_mpi_communicator();
  try {
    const int code = body(*comm);
    return finish_mpi(code, "", comm->timeout());
  } catch (const UserError& error) {
    return finish_mpi(2, error.what());
  } catch (const CollectiveFault& error) {
    return finish_mpi(4, error.what());
  } catch (const std::exception& error) {
    return finish_mpi(1, error.what());
  }
}
