// The selector of Ok-Topk: every magnitude above the threshold that the exchange remembers, in one
// pass; exactly the k largest when it remembers none, or remembers one for another k.

#include "sparsify/topk.h"

namespace tw {

namespace {

class AboveThreshold : public Selector {
 public:
  explicit AboveThreshold(std::unique_ptr<Selector> exact) : exact_(std::move(exact)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    if (in.threshold <= 0) return exact_->select(ctx, in, out);
    candidates_.collect(ctx, in.g, in.e, magnitude_bits(in.threshold));
    return all_.take(ctx, candidates_, candidates_.count(), in.e, in.base, out);
  }

 private:
  std::unique_ptr<Selector> exact_;
  Candidates candidates_;
  TopCandidates all_;
};

const bool selector =
    selectors().add({"oktopk", "magnitudes above a threshold that is kept for several steps",
                     [](Context& ctx, const Settings& s, const SelectorRank&) {
                       return std::make_unique<AboveThreshold>(topk_bodies(ctx.device(), s));
                     }});

}  // namespace

}  // namespace tw
