#include "apps/support/evaluate.h"

#include <algorithm>
#include <cstring>

#include "apps/support/together.h"

namespace tw {

StatisticsSwap::StatisticsSwap(Model& model, std::span<const float> statistics)
    : live_(model.arena().statistic_values()), own_(live_.begin(), live_.end()) {
  std::ranges::copy(statistics, live_.begin());
}

StatisticsSwap::~StatisticsSwap() { std::ranges::copy(own_, live_.begin()); }

ops::LossSums evaluate(Context& ctx, Communicator& comm, Model& model, Loader& loader) {
  ops::LossSums mine;
  loader.start(0);
  for (int64_t i = 0; i < loader.batches(); ++i) {
    const Batch& batch = loader.next();
    std::memcpy(model.images().data, batch.images.data, batch.images.bytes());
    std::memcpy(model.labels().data, batch.labels.data, batch.labels.bytes());
    const ops::LossSums sums = model.forward({.ctx = ctx, .training = false});
    mine.loss += sums.loss;
    mine.top1 += sums.top1;
    mine.top5 += sums.top5;
    mine.count += sums.count;
  }
  ops::LossSums all;
  for (const ops::LossSums& sums : gather(ctx, comm, mine)) {
    all.loss += sums.loss;
    all.top1 += sums.top1;
    all.top5 += sums.top5;
    all.count += sums.count;
  }
  return all;
}

}  // namespace tw
