// The sparse exchange: every rank's entries to every rank (Bruck's allgather), summed there in rank
// order.
//
// Bytes over all ranks: (P-1) (24 P + those of all ranks' N entries, 8 N if plain); of the 24, 16
// are the control word and 8 the size that the allgather itself sends.
// Messages: ceil(log2 P) a rank. Seconds: ceil(log2 P) alpha + 2 k (P-1) beta, k entries a rank.

#include "sparsify/exchanges/gathering_exchange.h"

namespace tw {

namespace {

class SparseAllgather : public GatheringExchange {
 public:
  using GatheringExchange::GatheringExchange;

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const auto parts = gather(ctx, comm, step, control);
    if (control.nonfinite_rank < 0) sparse_sum(ctx, parts, step.gradient);
  }
};

const bool registered = exchanges().add({"allgather",
                                         "sends every rank's entries to all, summed in rank order",
                                         {.make = make_exchange<SparseAllgather>}});

}  // namespace

}  // namespace tw
