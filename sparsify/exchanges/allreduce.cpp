// The dense exchange: an allreduce of the whole gradient. A status float after the gradient is
// summed with it.
//
// Bytes over all ranks, with a bandwidth-optimal collective (ring): 2(P-1) 4(d+1).

#include "comm/collectives/collectives.h"
#include "engine/core/buffer.h"
#include "sparsify/exchanges/status_slot.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class DenseExchange : public Exchange {
 public:
  explicit DenseExchange(const Settings& settings)
      : allreduce_(allreduces().find(settings.text("allreduce.collective")).value(settings)) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const StatusSlot slot(ctx, step.gradient_control, control);
    const size_t bytes = step.gradient_control.size_bytes();
    if (scratch_.bytes() < bytes) scratch_ = Buffer(ctx.device(), bytes);
    allreduce_(ctx, comm, step.gradient_control, scratch_.as<float>());
    slot.settle(ctx, comm, control);
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    return 2 * static_cast<uint64_t>(ranks - 1) * sizeof(float) * (d + 1);
  }

 private:
  Allreduce allreduce_;
  Buffer scratch_;
};

const bool allreduce_exchange = exchanges().add(
    {"allreduce",
     "sums the whole gradient with a dense collective",
     {.make = make_exchange<DenseExchange>, .dense = true},
     {{"collective", "ring", "collective of the dense sum (allreduce in --list)"}}});
const bool allreduce_sparsifier = sparsifiers().add(
    {"dense", "synchronous SGD on the whole gradient", {.selector = "", .exchange = "allreduce"}});

}  // namespace

}  // namespace tw
