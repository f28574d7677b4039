// The selector of Ok-Topk: all magnitudes above the threshold of the exchange, in one pass; the k
// largest if the exchange has no threshold for this k.

#include "sparsify/selector.h"
#include "sparsify/selectors/topk.h"

namespace tw {

namespace {

class AboveThreshold : public Selector {
 public:
  explicit AboveThreshold(Context& ctx) : exact_(ctx), candidates_(Candidates::create(ctx)) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    if (in.threshold <= 0) return exact_.select(ctx, in, out);
    candidates_->collect(ctx, in.g, in.e, magnitude_bits(in.threshold));
    return candidates_->take_largest(ctx, candidates_->count(), ~0u, in.e, in.base, out);
  }

 private:
  TopK exact_;
  std::unique_ptr<Candidates> candidates_;
};

std::unique_ptr<Selector> make_oktopk(Context& ctx, const Settings&, const SelectorRank&) {
  return std::make_unique<AboveThreshold>(ctx);
}

const bool oktopk_selector =
    selectors().add({"oktopk",
                     "magnitudes above a threshold that is kept for several steps",
                     {.make = make_oktopk, .volume = Volume::any}});

}  // namespace

}  // namespace tw
