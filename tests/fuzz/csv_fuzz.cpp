// The tables of a resumed run: any bytes are refused with a UserError, or leave whole rows up to
// the step of the checkpoint. The table at the end of a run prints whatever they hold.
#include <cstdlib>
#include <fstream>

#include "apps/common/console.h"
#include "apps/train/summary.h"
#include "apps/train/tables/records.h"
#include "engine/core/error.h"
#include "engine/io/csv.h"
#include "tests/fuzz/support/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tw::fuzz::InputFolder folder("csv");
  constexpr int64_t kStep = 50;
  // the header is rarely found by chance: the first byte prepends it
  std::string text = size > 0 && data[0] % 4 > 0 ? std::string(tw::kMetricsHeader) + "\n" : "";
  if (size > 0) text.append(reinterpret_cast<const char*>(data) + 1, size - 1);
  folder.write("metrics.csv", text);
  const auto path = folder.path() / "metrics.csv";
  try {
    { tw::CsvFile table(path, tw::kMetricsHeader, kStep); }
    std::ifstream in(path);
    std::string line;
    std::getline(in, line);
    while (std::getline(in, line)) {
      if (std::strtoll(line.c_str(), nullptr, 10) > kStep || in.eof()) std::abort();
    }
    tw::Console console(false);
    tw::print_table(console, path);
  } catch (const tw::UserError&) {
  }
  return 0;
}
