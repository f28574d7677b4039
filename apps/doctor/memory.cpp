// Memory of the machine, or of the control group of this process.
#include "apps/common/console.h"
#include "apps/common/system_files.h"
#include "apps/doctor/checkup.h"

namespace tw {

constexpr double kGib = 1024.0 * 1024 * 1024;

Findings check_memory(const Checkup&) {
  const double total = memory_row("MemTotal"), available = available_memory();
  const std::optional<double> limit = group_limit("memory.max");
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
