#include "sparsify/exchange.h"

namespace tw {

ControlWord pack(const Control& control) {
  return {control.nonfinite, control.nonfinite_value, control.stop ? 1u : 0u};
}

void merge(Control& control, int rank, const ControlWord& word) {
  if (rank == 0) control = {};
  control.stop |= word.stop != 0;
  if (word.nonfinite == UINT64_MAX || control.nonfinite_rank >= 0) return;
  control.nonfinite = word.nonfinite;
  control.nonfinite_value = word.nonfinite_value;
  control.nonfinite_rank = rank;
}

Registry<ExchangeFactory>& exchanges() {
  static Registry<ExchangeFactory> registry("exchange");
  return registry;
}

}  // namespace tw
