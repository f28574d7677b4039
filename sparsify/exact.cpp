// The reference for gTop-k: every rank's entries go to all, which add them, keep the k largest
// magnitudes of the sum (of equal ones the lower index) and put the rest back, each rank what it
// sent itself. What gTop-k's tree approximates (Shi et al. 2019, arXiv 1901.04359, section III).
//
// Bytes, messages and seconds: those of the sparse allgather, (P-1) (24 P + 8 N) bytes over all
// ranks for N plain entries; and on every rank a sort of all N indices.

#include <algorithm>

#include "sparsify/algorithm.h"
#include "sparsify/candidates.h"
#include "sparsify/gathering_exchange.h"

namespace tw {

namespace {

class ExactTopK : public GatheringExchange {
 public:
  using GatheringExchange::GatheringExchange;

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const auto parts = gather(ctx, comm, step, control);
    if (control.nonfinite_rank >= 0) return;
    sparse_sum(ctx, parts, step.gradient);
    keep_largest(parts, step.k, step.gradient);
    put_back(step.mine->view(), kept_, step.residual);
  }

 private:
  // clears all but the k largest of the sum; kept_ are the indices of those, ascending
  void keep_largest(std::span<const SparseView> parts, size_t k, std::span<float> sum) {
    kept_.clear();
    for (const SparseView& part : parts)
      kept_.insert(kept_.end(), part.indices.begin(), part.indices.end());
    std::ranges::sort(kept_);
    kept_.erase(std::ranges::unique(kept_).begin(), kept_.end());
    if (kept_.size() <= k) return;

    keys_.clear();
    for (uint32_t index : kept_) keys_.push_back(rank_key(sum[index], index, ~0u));
    const uint64_t cut = kth_largest(keys_, k);
    std::erase_if(kept_, [&](uint32_t index) {
      const bool pruned = rank_key(sum[index], index, ~0u) < cut;
      if (pruned) sum[index] = 0;
      return pruned;
    });
  }

  std::vector<uint32_t> kept_;
  std::vector<uint64_t> keys_;
};

const bool exchange =
    exchanges().add({"exact", "sends all entries to all, keeps the k largest of their sum",
                     [](const Settings& settings) -> std::unique_ptr<Exchange> {
                       return std::make_unique<ExactTopK>(settings);
                     }});
const bool algorithm = algorithms().add({"exact",
                                         "exact top-k of the sum of all ranks' exact top-k",
                                         {.selector = "topk", .exchange = "exact"}});

}  // namespace

}  // namespace tw
