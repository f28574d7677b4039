// ValueSum: sums entries whose indices all ranks know. Only the values are sent, by the dense
// collective of DenseSum, with a status float.
#pragma once

#include <optional>
#include <vector>

#include "sparsify/exchange.h"
#include "sparsify/exchanges/dense_sum.h"
#include "sparsify/exchanges/process_sum.h"

namespace tw {

class ValueSum {
 public:
  /// UserError as DenseSum::validate().
  explicit ValueSum(const Settings& settings) : sum_(settings) {}

  /// Sums n values into step.gradient and merges the control of all ranks. n < d: step.mine has the
  /// same n indices on all ranks, or it is empty and this rank adds zeros (in a step that ends in a
  /// fault). n = d: step.mine has any entries.
  void operator()(Context& ctx, Communicator& comm, const ExchangeStep& step, size_t n,
                  Control& control);

  size_t value_bytes() const { return sum_.value_bytes(); }
  /// Bytes that all ranks send for n values, as DenseSum::wire_bytes().
  uint64_t wire_bytes(int ranks, size_t n) const { return sum_.wire_bytes(ranks, n); }
  /// As DenseSum::seconds().
  double seconds(const LinkCost& link, int ranks, size_t n) const {
    return sum_.seconds(link, ranks, n);
  }

 private:
  DenseSum sum_;
  ProcessSum process_sum_;
  std::optional<Context> host_;  // entries are in host memory
  std::vector<float> values_;
};

}  // namespace tw
