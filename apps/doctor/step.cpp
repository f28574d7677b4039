// Training steps on random images: whether they work, and how fast.
#include <sstream>

#include "apps/common/measurements.h"
#include "apps/common/network_choice.h"
#include "apps/common/rank_utils.h"
#include "apps/common/resolve.h"
#include "apps/doctor/checkup.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

constexpr int64_t kBatch = 32;
constexpr size_t kMostSteps = 50;

/// The network that train would take for the folder of the lowest rank, on every rank; for none,
/// or one that check_data() finds fault with, the default.
DataNetwork network_to_time(const Checkup& checkup) {
  DataNetwork network{kResnet20, {}};
  const std::string& dir = checkup.config.data_dir;
  try {
    if (checkup.comm.rank() == 0 && !dir.empty()) network = network_for_data(dir);
  } catch (const std::exception&) {  // the default, then
  }
  Shape& image = network.spec.image;
  std::istringstream told(
      broadcast_text(checkup.comm, fmt::format("{} {} {} {} {}", network.model, image[0], image[1],
                                               image[2], network.spec.classes)));
  told >> network.model >> image[0] >> image[1] >> image[2] >> network.spec.classes;
  return network;
}

}  // namespace

Findings check_step(const Checkup& checkup) {
  if (checkup.config.seconds == 0) return {};
  Communicator& comm = checkup.comm;
  Context ctx(checkup.device, resolve_threads(0, comm.size()), comm.gpu());
  ctx.bind_thread();
  const auto [network, spec] = network_to_time(checkup);
  Stopwatch clock;
  Model model(network, spec);
  const DType type = activations_of(resolve_precision({}, checkup.device));
  model.plan(ctx, {.batch = kBatch, .activations = type});
  model.allocate(ctx, 1);
  fill_random_batch(ctx, model, static_cast<uint64_t>(comm.rank()));
  model.refresh(ctx);
  SyncSgd sgd(ctx, comm, model.arena(), {}, default_settings());

  std::vector<double> seconds;
  double exchange = 0;
  // the first step prepares kernels
  for (uint64_t step = 0; seconds.size() < kMostSteps; ++step) {
    if (!seconds.empty() && slowest_rank(comm, clock.total()) >= checkup.config.seconds) break;
    barrier(comm);
    Stopwatch watch;
    const PassArgs pass{.ctx = ctx, .step = step};
    model.forward(pass);
    model.backward(pass);
    const StepReport report = sgd.step({.step = step, .lr = 1e-4});
    model.refresh(ctx);
    ctx.synchronize();
    if (step == 0) continue;
    seconds.push_back(watch.total());
    exchange += report.sec_exchange;
  }
  const double one = slowest_rank(comm, median(seconds));
  const double steps = static_cast<double>(seconds.size());
  const double share = slowest_rank(comm, exchange / steps) / one;
  const double images = static_cast<double>(kBatch * comm.size()) / one;
  Finding found{.name = "step"};
  found.text = fmt::format(
      "{}, {} images of {} x {} a rank, {} on the {}: {:.0f} images/s, {:.1f} ms a step", network,
      kBatch, spec.image[0], spec.image[1], name(type), name(checkup.device), images, 1e3 * one);
  if (comm.size() > 1)
    found.text += fmt::format(", {:.0f} % of it in the dense exchange", 100 * std::min(1.0, share));
  found.details = {{"model", network},        {"batch_size", kBatch},
                   {"precision", name(type)}, {"device", name(checkup.device)},
                   {"images_per_s", images},  {"seconds", one},
                   {"exchange_share", share}, {"steps", seconds.size()}};
  return {found};
}

}  // namespace tw
