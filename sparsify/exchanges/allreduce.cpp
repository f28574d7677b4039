// The dense exchange: an allreduce of the whole gradient. A status float after the gradient is
// summed with it. With `allreduce.values=bf16` or `fp16`, messages have values of 2 bytes.
//
// Bytes over all ranks, with a bandwidth-optimal collective (ring): 2(P-1) 4(d+1), or half of it.

#include "sparsify/exchanges/dense_sum.h"
#include "sparsify/exchanges/status_slot.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

class DenseExchange : public Exchange {
 public:
  explicit DenseExchange(const Settings& settings) : sum_(settings) {}

  void run(Context& ctx, Communicator& comm, const ExchangeStep& step, Control& control) override {
    const StatusSlot slot(ctx, step.gradient_control, control);
    sum_(ctx, comm, step.gradient_control);
    slot.settle(ctx, comm, control);
  }

  uint64_t wire_bytes(int ranks, size_t d, size_t) const override {
    return sum_.wire_bytes(ranks, d);
  }
  double seconds(const LinkCost& link, int ranks, size_t d, size_t) const override {
    return sum_.seconds(link, ranks, d);
  }
  bool sums_densely() const override { return true; }

 private:
  DenseSum sum_;
};

constexpr const char* kName = "allreduce";

const bool allreduce_exchange = exchanges().add(
    {kName,
     "sums the whole gradient with a dense collective",
     {.make = make_exchange<DenseExchange>, .dense = true, .validate = DenseSum::validate},
     {{"collective", "ring", "collective of the dense sum (allreduce in --list)"},
      {"values",
       "f32",
       "type of the values in messages; sums are f32, rounded when they are sent",
       {"f32", "fp16", "bf16"}}}});
const bool allreduce_sparsifier = sparsifiers().add(
    {kDense, "synchronous SGD on the whole gradient", {.selector = "", .exchange = kName}});

}  // namespace

const char* const kDense = "dense";
const char* const kSumCollective = "allreduce.collective";
const char* const kSumValues = "allreduce.values";

const Registry<ExchangeEntry>::Entry& dense_exchange() { return exchanges().find(kName); }

}  // namespace tw
