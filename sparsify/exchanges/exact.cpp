// The reference for gTop-k: every rank's entries go to all, which add them, keep the k largest
// magnitudes of the sum (of equal ones the lower index) and put the rest back, each rank what it
// sent itself. What gTop-k's tree approximates (Shi et al. 2019, arXiv 1901.04359, section III).
//
// Bytes, messages and seconds: those of the sparse allgather, (P-1) (24 P + 8 N) bytes over all
// ranks for N plain entries; and on every rank a sort of all N indices.

#include <algorithm>

#include "sparsify/exchanges/gathering_exchange.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class ExactTopK : public GatheringExchange {
 public:
  using GatheringExchange::GatheringExchange;

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const auto parts = gather(ctx, comm, step, control);
    if (control.nonfinite_rank >= 0) return;
    add(parts);
    keep_largest(step.k);
    const SparseView sum{kept_, sums_};
    sparse_sum(ctx, {&sum, 1}, step.gradient);
    residual_return_.missing(ctx, step.mine->view(), kept_, step.residual);
  }

 private:
  // kept_ and sums_: all places, ascending, and what the ranks have there, in rank order
  void add(std::span<const SparseView> parts) {
    kept_.clear();
    for (const SparseView& part : parts)
      kept_.insert(kept_.end(), part.indices.begin(), part.indices.end());
    std::ranges::sort(kept_);
    kept_.erase(std::ranges::unique(kept_).begin(), kept_.end());
    sums_.reserve(kept_.capacity());
    sums_.assign(kept_.size(), 0.0f);
    for (const SparseView& part : parts)
      for (size_t i = 0, at = 0; i < part.indices.size(); ++i) {
        while (kept_[at] != part.indices[i]) ++at;
        sums_[at] += part.values[i];
      }
  }

  void keep_largest(size_t k) {
    if (kept_.size() <= k) return;
    keys_.clear();
    for (size_t i = 0; i < kept_.size(); ++i) keys_.push_back(rank_key(sums_[i], kept_[i], ~0u));
    const uint64_t cut = kth_largest(keys_, k);
    size_t count = 0;
    for (size_t i = 0; i < kept_.size(); ++i) {
      const bool stays = rank_key(sums_[i], kept_[i], ~0u) >= cut;
      kept_[count] = kept_[i];
      sums_[count] = sums_[i];
      count += stays;
    }
    kept_.resize(count);
    sums_.resize(count);
  }

  std::vector<uint32_t> kept_;
  std::vector<float> sums_;
  std::vector<uint64_t> keys_;
};

const bool exchange = exchanges().add({"exact",
                                       "sends all entries to all, keeps the k largest of their sum",
                                       {.make = make_exchange<ExactTopK>}});
const bool algorithm = sparsifiers().add({"exact",
                                          "exact top-k of the sum of all ranks' exact top-k",
                                          {.selector = "topk", .exchange = "exact"}});

}  // namespace

}  // namespace tw
