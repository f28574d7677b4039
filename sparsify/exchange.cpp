#include "sparsify/exchange.h"

namespace tw {

void Control::record(const SelectInfo& found, size_t offset) {
  if (found.nonfinite == SIZE_MAX || nonfinite != SIZE_MAX) return;
  nonfinite = offset + found.nonfinite;
  nonfinite_value = found.nonfinite_value;
}

ControlWord pack(const Control& control) {
  return {.nonfinite = control.nonfinite,
          .nonfinite_value = control.nonfinite_value,
          .stop = control.stop,
          .reporter = static_cast<uint32_t>(control.nonfinite_rank + 1) & 0x7fffffffu};
}

void merge(Control& control, int rank, const ControlWord& word) {
  control.stop |= word.stop != 0;
  if (word.nonfinite == UINT64_MAX) return;
  const int finder = word.reporter > 0 ? static_cast<int>(word.reporter) - 1 : rank;
  if (control.nonfinite_rank >= 0 && control.nonfinite_rank <= finder) return;
  control.nonfinite = word.nonfinite;
  control.nonfinite_value = word.nonfinite_value;
  control.nonfinite_rank = finder;
}

Registry<ExchangeEntry>& exchanges() {
  static Registry<ExchangeEntry> registry("exchange");
  return registry;
}

Registry<SettingGroup>& setting_groups() {
  static Registry<SettingGroup> registry("group of settings");
  return registry;
}

}  // namespace tw
