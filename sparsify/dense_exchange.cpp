// The dense exchange: an allreduce of the whole gradient, and the algorithm that is nothing else.
// The control float behind the gradient is summed with it: above 0 some rank was told to stop, NaN
// some rank's gradient is not finite, and only then the ranks say which one it is.
//
// Bytes over all ranks, with a collective that moves the least (ring): 2(P-1) 4(d+1).

#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "comm/collectives.h"
#include "engine/buffer.h"
#include "sparsify/sync_sgd.h"

namespace tw {

namespace {

class DenseExchange : public Exchange {
 public:
  explicit DenseExchange(Allreduce allreduce) : allreduce_(std::move(allreduce)) {}

  bool dense() const override { return true; }

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    // behind a bucket lies the next one's first element
    float& slot = step.gradient_control.back();
    const float borrowed = slot;
    slot = control.stop ? 1.0f : 0.0f;
    if (control.nonfinite != SIZE_MAX) slot = std::numeric_limits<float>::quiet_NaN();

    const size_t bytes = step.gradient_control.size_bytes();
    if (scratch_.bytes() < bytes) scratch_ = Buffer(ctx.device(), bytes);
    allreduce_(ctx, comm, step.gradient_control, scratch_.as<float>());

    const float said = std::exchange(slot, borrowed);
    if (std::isnan(said))
      tell_all(ctx, comm, control);
    else
      control.stop = said > 0;
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    return 2 * static_cast<uint64_t>(ranks - 1) * sizeof(float) * (d + 1);
  }

 private:
  static void tell_all(Context& ctx, Communicator& comm, Control& control) {
    const ControlWord mine = pack(control);
    GatheredBlocks words;
    allgather(ctx, comm, std::as_bytes(std::span(&mine, 1)), sizeof mine, words);
    for (int rank = 0; rank < comm.size(); ++rank) {
      ControlWord word;
      std::memcpy(&word, words[rank].data(), sizeof word);
      merge(control, rank, word);
    }
  }

  Allreduce allreduce_;
  Buffer scratch_;
};

const bool exchange = exchanges().add(
    {"allreduce",
     "sums the whole gradient with a dense collective",
     [](const Settings& settings) -> std::unique_ptr<Exchange> {
       const std::string& collective = settings.text("allreduce.collective");
       return std::make_unique<DenseExchange>(allreduces().find(collective).factory(settings));
     },
     {{"collective", "ring", "how the dense sum is formed; --list names the collectives"}}});
const bool algorithm = algorithms().add(
    {"dense", "synchronous SGD on the whole gradient", {.selector = "", .exchange = "allreduce"}});

}  // namespace

}  // namespace tw
