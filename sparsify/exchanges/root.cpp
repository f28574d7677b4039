// Bulk-synchronous SGD with the update at rank 0 (Wang et al. 2017, arXiv 1611.04255): the
// gradients of each bucket are reduced to rank 0 (with --overlap, as soon as they are ready), rank
// 0 updates its parameters, and the parameters are broadcast. With linear pipelines the cost of
// both is nearly independent of the number of ranks.
//
// Bytes over all ranks: (P-1) 4(d+1) up, (P-1) 4 for the status float and (P-1) 4 d down; with
// recursive_halving also its tree, up and down.

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"
#include "sparsify/exchanges/status_slot.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

const std::string& collective(const Settings& settings) { return settings.text("root.collective"); }

const Collective<Reduce>& reduce_of(const Settings& settings) {
  return reduces().find(collective(settings)).value;
}
const Collective<Broadcast>& broadcast_of(const Settings& settings) {
  return broadcasts().find(collective(settings)).value;
}

class RootExchange : public Exchange {
 public:
  explicit RootExchange(const Settings& settings)
      : reduce_of_(reduce_of(settings)),
        broadcast_of_(broadcast_of(settings)),
        reduce_(reduce_of_(settings)),
        broadcast_(broadcast_of_(settings)) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const StatusSlot slot(ctx, step.gradient_control, control);
    scratch_.grow(ctx.device(), step.gradient_control.size_bytes());
    reduce_(ctx, comm, 0, step.gradient_control, scratch_.as<float>());
    broadcast(ctx, comm, 0, std::as_writable_bytes(slot.sum()));
    slot.settle(ctx, comm, control);
  }

  void publish(Context& ctx, Communicator& comm, std::span<float> values) override {
    broadcast_(ctx, comm, 0, std::as_writable_bytes(values));
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    return 2 * static_cast<uint64_t>(ranks - 1) * sizeof(float) * (d + 1) +
           reduce_of_.more_bytes(ranks, d + 1) + broadcast_of_.more_bytes(ranks, d);
  }
  double seconds(const LinkCost& link, int ranks, size_t d, size_t) const override {
    const auto n = static_cast<double>(d);
    return reduce_of_.seconds(link, ranks, n) + broadcast_of_.seconds(link, ranks, n);
  }

 private:
  Collective<Reduce> reduce_of_;
  Collective<Broadcast> broadcast_of_;
  Reduce reduce_;
  Broadcast broadcast_;
  Buffer scratch_;
};

const bool root_exchange = exchanges().add(
    {"root",
     "reduces whole gradients to rank 0, which updates and broadcasts the parameters",
     {.make = make_exchange<RootExchange>,
      .dense = true,
      .updates_at_root = true,
      .validate =
          [](const Settings& settings) {
            reduce_of(settings);
            broadcast_of(settings);
          }},
     {{"collective", "linear_pipeline", "collective of reduce and broadcast (both in --list)"}}});
const bool root_sparsifier = sparsifiers().add({"bsp",
                                                "dense SGD, updated at rank 0 bucket by bucket",
                                                {.exchange = "root", .scope = Scope::layer}});

}  // namespace

}  // namespace tw
