#include "apps/train/evaluate.h"

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

void load_micro_batch(Communicator& comm, DevicePrefetcher& feed, const Model& model) {
  try {
    feed.next(model.images(), model.labels());
  } catch (const UserError& error) {
    const std::string rank = comm.size() == 1 ? "" : fmt::format("[data] rank {}: ", comm.rank());
    fail<LocalUserError>("{}{}", rank, error.what());
  }
}

std::vector<float> recompute_statistics(Context& ctx, Communicator& comm, Model& model,
                                        Loader& data, int64_t batches, uint64_t seed,
                                        const std::function<void(int64_t)>& report) {
  // the statistics before leave no rounding behind
  const StatisticsSwap swap(model, std::vector<float>(model.arena().statistics_size()));
  const int64_t first = batches * comm.rank() / comm.size(),
                end = batches * (comm.rank() + 1) / comm.size();
  DevicePrefetcher feed(ctx, data);
  feed.start(0, first);
  for (int64_t i = first; i < end; ++i) {
    report(i - first);
    load_micro_batch(comm, feed, model);
    model.queue_forward({.ctx = ctx,
                         .momentum = 1.0f / static_cast<float>(i - first + 1),
                         .seed = seed,
                         .step = static_cast<uint64_t>(i)});
    if (i + 1 < end) feed.prefetch();
  }
  model.take_sums(ctx);
  const HostFloats own = model.arena().host_statistics();
  std::vector<float> weighted(own.span().begin(), own.span().end());
  const float weight =
      static_cast<float>((end - first) * comm.size()) / static_cast<float>(batches);
  for (float& value : weighted) value *= weight;
  return mean_over_ranks(comm, weighted);
}

ops::LossSums evaluate(Context& ctx, Communicator& comm, Model& model, Loader& data,
                       const std::function<bool(int64_t)>& go_on) {
  DevicePrefetcher feed(ctx, data);
  feed.start(0);
  int64_t i = 0;
  for (; i < data.batches() && go_on(i); ++i) {
    load_micro_batch(comm, feed, model);
    model.queue_forward({.ctx = ctx, .training = false});
    feed.prefetch();
  }
  ops::LossSums all;
  for (const ops::LossSums& sums : gather(comm, model.take_sums(ctx))) all += sums;
  check(all.count > 0 || i < data.batches(), "[data] all images to validate on are damaged");
  return all;
}

}  // namespace tw
