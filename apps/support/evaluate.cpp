#include "apps/support/evaluate.h"

#include <algorithm>

#include "apps/support/together.h"

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
    // of the device, which tells it again in the next call
  }
}

const Batch& next_batch(Communicator& comm, Loader& loader) {
  try {
    return loader.next();
  } catch (const UserError& error) {
    if (comm.size() == 1) throw;
    fail<Fault>("[data] rank {}: {}", comm.rank(), error.what());
  }
}

ops::LossSums evaluate(Context& ctx, Context& host, Communicator& comm, Model& model,
                       Loader& loader) {
  loader.start(0);
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const Batch& batch = next_batch(comm, loader);
    copy(ctx, batch.images, model.images());
    copy(ctx, batch.labels, model.labels());
    model.queue_forward({.ctx = ctx, .training = false});
  }
  ops::LossSums all;
  for (const ops::LossSums& sums : gather(host, comm, model.take_sums(ctx))) all += sums;
  return all;
}

}  // namespace tw
