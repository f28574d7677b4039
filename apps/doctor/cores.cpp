// Cores, threads of a rank, and what limits them.
#include <sstream>
#include <thread>

#include "apps/common/console.h"
#include "apps/common/resolve.h"
#include "apps/common/system_files.h"
#include "apps/doctor/checkup.h"

namespace tw {

namespace {

/// The cores that a control group allows, such as 1.5; none without a limit.
std::optional<double> allowed_cores() {
  std::istringstream text(whole_text("/sys/fs/cgroup/cpu.max"));
  double quota = 0, period = 0;
  if (!(text >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

/// Threads of all programs that wanted to run in the last minute, on average.
double load() {
  std::istringstream text(whole_text("/proc/loadavg"));
  double threads = 0;
  text >> threads;
  return threads;
}

}  // namespace

Findings check_cores(const Checkup& checkup) {
  const int cores = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const int threads = resolve_threads(0, checkup.comm.size());
  const std::optional<double> allowed = allowed_cores();
  const double busy = load();
  Finding found{
      .name = "cores",
      .text = fmt::format("{} cores; {} x {}; load {:.1f}", cores,
                          counted(checkup.local_ranks, "rank"), counted(threads, "thread"), busy)};
  found.details = {{"cores", cores},
                   {"ranks", checkup.local_ranks},
                   {"threads_per_rank", threads},
                   {"load", busy}};
  if (allowed) found.details["allowed_cores"] = *allowed;
  if (allowed && *allowed < checkup.local_ranks * threads) {
    found.state = State::note;
    found.text += fmt::format("; the control group allows {:.1f} cores", *allowed);
    found.cure = fmt::format("train with --threads-per-rank {}",
                             std::max(1, static_cast<int>(*allowed) / checkup.local_ranks));
  } else if (checkup.local_ranks * threads > cores) {
    found.state = State::note;
    found.text += "; ranks share cores, so they compute more slowly than alone";
    found.cure = fmt::format("start at most {} ranks on this machine", cores);
  } else if (busy > 0.5 * cores) {
    found.state = State::note;
    found.text += "; other programs use this machine, so speeds below are too low";
    found.cure = "train when they have ended, or with fewer --threads-per-rank than cores";
  }
  return {found};
}

}  // namespace tw
