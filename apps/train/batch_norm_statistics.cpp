#include "apps/train/batch_norm_statistics.h"

#include <algorithm>

#include "apps/common/rank_utils.h"

namespace tw {

StatisticsSwap::StatisticsSwap(Model& model, std::span<const float> statistics)
    : live_(model.arena().host_statistics()), own_(live_.span().begin(), live_.span().end()) {
  std::ranges::copy(statistics, live_.span().begin());
  live_.write();
}

StatisticsSwap::~StatisticsSwap() {
  std::ranges::copy(own_, live_.span().begin());
  try {
    live_.write();
  } catch (const Fault&) {
    // the device has failed; the next call reports it
  }
}

std::vector<float> statistics_of_all(Communicator& comm, const Model& model, bool average) {
  const HostFloats live = model.arena().host_statistics();
  const std::span<const float> own = live.span();
  if (average) return mean_over_ranks(comm, own);
  std::vector<float> of_rank_0(own.begin(), own.end());
  broadcast(comm, 0, std::as_writable_bytes(std::span(of_rank_0)));
  return of_rank_0;
}

}  // namespace tw
