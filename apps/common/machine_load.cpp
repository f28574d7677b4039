#include "apps/common/machine_load.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <fstream>
#include <set>
#include <sstream>
#include <utility>

#include "apps/common/console.h"
#include "comm/collectives/collectives.h"
#include "comm/host_id.h"

namespace tw {

namespace {

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Cores that this process may use.
cpu_set_t usable() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_SET(0, &set);
  return set;
}

/// CPU seconds of all programs on the cores that this process may use, since the start of the
/// machine; 0 if unknown.
double busy_seconds() {
  const cpu_set_t cores = usable();
  std::ifstream in("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string cpu;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0;
    words >> cpu >> user >> nice >> system >> idle >> waiting >> irq >> softirq >> steal;
    size_t core = 0;
    if (!cpu.starts_with("cpu") ||
        std::from_chars(cpu.data() + 3, cpu.data() + cpu.size(), core).ec != std::errc{})
      continue;  // the sum of all cores, and other counts
    if (CPU_ISSET(core, &cores)) ticks += user + nice + system + irq + softirq + steal;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

double own_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What a rank knows about its process and machine.
struct Usage {
  HostId host;
  int64_t process;
  double busy, own, wall;
  int64_t cores;
};

}  // namespace

MachineLoad::MachineLoad() : busy_(busy_seconds()), own_(own_seconds()), wall_(wall_seconds()) {}

std::map<HostId, MachineLoad::Machine> MachineLoad::machines(Communicator& comm) const {
  const cpu_set_t cores = usable();
  const Usage mine{.host = this_host(),
                   .process = getpid(),
                   .busy = busy_seconds() - busy_,
                   .own = own_seconds() - own_,
                   .wall = wall_seconds() - wall_,
                   .cores = CPU_COUNT(&cores)};
  std::map<HostId, Machine> found;
  std::set<std::pair<HostId, int64_t>> processes;  // the ranks of one process share its CPU time
  for (const Usage& usage : gather(comm, mine)) {
    Machine& machine = found[usage.host];
    machine.busy = std::max(machine.busy, usage.busy);
    machine.wall = std::max(machine.wall, usage.wall);
    machine.cores = usage.cores;
    ++machine.ranks;
    if (processes.emplace(usage.host, usage.process).second) machine.own += usage.own;
  }
  return found;
}

double MachineLoad::cores_taken(Communicator& comm, int threads_per_rank) const {
  double most = 0;
  for (const auto& [host, machine] : machines(comm)) {
    const auto idle = static_cast<double>(machine.cores - machine.ranks * threads_per_rank);
    most = std::max(most, machine.others() - std::max(0.0, idle));
  }
  return most;
}

MachineLoad::Notes MachineLoad::notes(Communicator& comm, int threads_per_rank) const {
  double others = 0;
  const auto found = machines(comm);
  const Machine* crowded = nullptr;
  for (const auto& [host, machine] : found) {
    others = std::max(others, machine.others());
    if (machine.ranks * threads_per_rank > machine.cores) crowded = &machine;
  }
  Notes notes{.busy = others > 0.1};
  if (notes.busy)
    notes.lines.push_back(
        fmt::format("note: other programs used {:.1f} cores of a machine during the measurement; "
                    "its seconds are those of a busy machine",
                    others));
  if (crowded)
    notes.lines.push_back(fmt::format(
        "note: {} ranks x {} share {} cores of a machine; on machines of their own they compute "
        "faster, and overlap does not slow backward down",
        crowded->ranks, counted(threads_per_rank, "thread"), crowded->cores));
  return notes;
}

}  // namespace tw
