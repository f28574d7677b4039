// The selector of Ok-Topk: all magnitudes above the threshold of the exchange, in one pass; the k
// largest if the exchange has no threshold for this k.

#include "sparsify/selector.h"
#include "sparsify/selectors/topk.h"

namespace tw {

namespace {

class OkTopkSelector : public Selector {
 public:
  explicit OkTopkSelector(Context& ctx) : above_(ctx) {}

  SelectInfo select(Context& ctx, const SelectStep& in, SparseVector& out) override {
    return above_.select(ctx, in.threshold, in, out);
  }

 private:
  AboveThreshold above_;
};

const bool oktopk_selector =
    selectors().add({"oktopk",
                     "magnitudes above a threshold that is kept for several steps",
                     {.make = make_selector<OkTopkSelector>, .volume = Volume::any}});

}  // namespace

}  // namespace tw
