// The sparse exchange: the entries of every rank go to all ranks (Bruck's allgather) and are summed
// there in rank order.
//
// Bytes over all ranks: (P-1) (24 P + those of the N entries of all ranks, 8 N if plain). Of the
// 24, 16 are the control word and 8 the length that the allgather sends. Messages: ceil(log2 P) a
// rank. Seconds: ceil(log2 P) alpha + k (P-1) (2 beta + merge), k entries a rank.

#include "sparsify/exchanges/gathering_exchange.h"
#include "sparsify/exchanges/process_sum.h"

namespace tw {

namespace {

class SparseAllgather : public GatheringExchange {
 public:
  using GatheringExchange::GatheringExchange;

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const auto parts = gather_selected(ctx, comm, step, control);
    if (control.nonfinite_rank < 0) sum_(ctx, comm, parts, step.gradient);
  }

 private:
  ProcessSum sum_;
};

const bool allgather_registered =
    exchanges().add({"allgather",
                     "sends every rank's entries to all, summed in rank order",
                     {.make = make_exchange<SparseAllgather>,
                      .adds_what_is_sent = true,
                      .with_shared_indices = "shared"}});

}  // namespace

}  // namespace tw
