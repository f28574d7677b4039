#include "apps/train/evaluate.h"

#include "comm/collectives/collectives.h"

namespace tw {

void load_micro_batch(Communicator& comm, DevicePrefetcher& feed, const Model& model) {
  try {
    feed.next(model.images(), model.labels());
  } catch (const UserError& error) {
    if (comm.size() == 1) throw;
    fail<LocalUserError>("[data] rank {}: {}", comm.rank(), error.what());
  }
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
