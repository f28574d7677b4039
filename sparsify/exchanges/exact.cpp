// The reference that gTop-k's tree approximates (Shi et al. 2019, arXiv 1901.04359): the entries of
// every rank go to all ranks, which add them and keep the k largest magnitudes of the sum, of equal
// ones the lower index. Each rank returns its own dropped entries to its residual.
//
// Bytes, messages and seconds: those of the sparse allgather, (P-1) (24 P + 8 N) bytes over all
// ranks for N plain entries. Every rank also sorts all N indices.

#include <algorithm>

#include "sparsify/exchanges/gathering_exchange.h"
#include "sparsify/exchanges/process_sum.h"
#include "sparsify/exchanges/topk_merge.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class ExactTopK : public GatheringExchange {
 public:
  using GatheringExchange::GatheringExchange;

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const auto parts = gather_selected(ctx, comm, step, control);
    if (control.nonfinite_rank >= 0) return;
    add(parts);
    prune_to_k(sum_, step.k, keys_);
    const SparseView sum = sum_.view();
    process_sum_(ctx, comm, {&sum, 1}, step.gradient);
    residual_return_.missing(ctx, step.mine->view(), sum.indices, step.residual);
  }

 private:
  // sum_: every index of some part, ascending, with the values added in rank order
  void add(std::span<const SparseView> parts) {
    size_t total = 0;
    for (const SparseView& part : parts) total += part.indices.size();
    sum_.count = 0;
    sum_.reserve(total);
    for (const SparseView& part : parts)
      for (uint32_t index : part.indices) sum_.push(index, 0.0f);
    const std::span<uint32_t> indices(sum_.indices.data(), total);
    std::ranges::sort(indices);
    sum_.count = total - std::ranges::unique(indices).size();
    for (const SparseView& part : parts)
      for (size_t i = 0, at = 0; i < part.indices.size(); ++i) {
        while (sum_.indices[at] != part.indices[i]) ++at;
        sum_.values[at] += part.values[i];
      }
  }

  SparseVector sum_;
  ProcessSum process_sum_;
  std::vector<uint64_t> keys_;
};

const bool exact_exchange =
    exchanges().add({"exact",
                     "sends all entries to all, keeps the k largest of their sum",
                     {.make = make_exchange<ExactTopK>, .one_threshold = true}});
const bool exact_sparsifier =
    sparsifiers().add({"exact",
                       "exact top-k of the sum of all ranks' exact top-k",
                       {.selector = "topk", .exchange = "exact", .advice = Advice::never}});

}  // namespace

}  // namespace tw
