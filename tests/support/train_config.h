// The options of train that flags give.
#pragma once

#include "apps/train/config.h"
#include "tests/support/arguments.h"

namespace tw::test {

/// Checked and resolved, as for one rank.
inline TrainConfig train_config(const std::vector<std::string>& flags) {
  Arguments arguments(flags);
  const OptionTable::Given given = parse_flags(arguments.count(), arguments.values());
  TrainConfig config = read_train_config(given, read_run_options(given));
  resolve(config);
  check_resume(config);
  return config;
}

}  // namespace tw::test
