#include "apps/common/launch.h"

#include <csignal>
#include <cstdio>

#include "apps/common/options.h"
#include "comm/transports.h"
#include "engine/core/error.h"

namespace tw {

namespace {

std::atomic<bool> stop_requested = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // else no signal handler may touch it

void on_signal(int signal) {
  stop_requested = true;
  std::signal(signal, SIG_DFL);
}

int report(const std::exception& error, bool speaks, int code) {
  if (speaks) fmt::print(stderr, "error: {}\n", error.what());
  return code;
}

}  // namespace

const std::atomic<bool>& stop_signal() {
  // a program that never calls this is ended by the first signal
  static const bool installed = [] {
    for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, on_signal);
    return true;
  }();
  static_cast<void>(installed);
  return stop_requested;
}

int run_program(const std::function<int(Communicator&)>& body) {
  set_gpu_connections();
  std::unique_ptr<Communicator> world;
  const bool mpi = started_by_mpi();
  int code = 0;
  try {
    world = mpi ? make_mpi_communicator() : make_self_communicator();
    code = body(*world);
  } catch (const HelpText& help) {
    if (!world || world->rank() == 0) fmt::print("{}", help.text);
  } catch (const LocalUserError& error) {
    code = report(error, true, 2);
    if (world) world->abort(error.what(), code);
  } catch (const UserError& error) {
    code = report(error, !world || world->rank() == 0, 2);
  } catch (const CollectiveFault& error) {
    code = report(error, !world || world->rank() == 0, 1);
  } catch (const std::exception& error) {
    code = report(error, true, 1);
    if (world) world->abort(error.what(), code);
  }
  world.reset();
  return mpi ? finish_mpi(code) : code;
}

}  // namespace tw
