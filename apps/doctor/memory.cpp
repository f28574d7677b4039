// Memory of the machine, or of the control group of this process.
#include <sstream>

#include "apps/common/console.h"
#include "apps/common/system_files.h"
#include "apps/doctor/checkup.h"

namespace tw {

namespace {

constexpr double kKib = 1024, kGib = 1024.0 * 1024 * 1024;

/// Bytes of a row of /proc/meminfo.
double bytes_of(const std::string& rows, const char* key) {
  std::istringstream text(value_in(rows, key));
  double kib = 0;
  text >> kib;
  return kib * kKib;
}

}  // namespace

Findings check_memory(const Checkup&) {
  const std::string rows = whole_text("/proc/meminfo");
  const double total = bytes_of(rows, "MemTotal");
  double available = bytes_of(rows, "MemAvailable");
  const std::optional<double> limit = group_limit("memory.max");
  if (limit) {
    const double used = group_limit("memory.current").value_or(0);
    available = std::min(available, std::max(0.0, *limit - used));
  }
  Finding found{.name = "memory",
                .text = fmt::format("{} available of {}", bytes_text(available),
                                    bytes_text(limit ? std::min(*limit, total) : total))};
  found.details = {{"total_bytes", total}, {"available_bytes", available}};
  if (limit) found.details["limit_bytes"] = *limit;
  if (available < kGib) {
    found.state = available < kGib / 8 ? State::problem : State::note;
    found.text += "; a rank of ResNet-20 needs about 0.2 GiB, one of ResNet-50 several GiB";
    found.cure = "end other programs; `train --dry-run` prints the memory that a run needs";
  }
  return {found};
}

}  // namespace tw
