// Reads any bytes as a configuration file or, if they begin with a -, as flags, one per line. The
// result is a UserError, or a configuration that survives writing and reading.
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/train/config.h"
#include "engine/core/error.h"
#include "tests/fuzz/support/input_file.h"
#include "tests/support/train_config.h"

namespace {

tw::Json resolved(const std::vector<std::string>& flags) {
  return tw::test::train_config(flags).json();
}

tw::Json read_back(const tw::Json& config) {
  const std::string text = config.dump();
  const tw::fuzz::InputFile file(text);
  return resolved({"--config", file.path()});
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const tw::fuzz::InputFile file(text);
  tw::Json config;
  try {
    config = resolved(text.starts_with('-') ? lines_of(text)
                                            : std::vector{"--config" + ("=" + file.path())});
  } catch (const tw::UserError&) {
    return 0;
  } catch (const tw::HelpText&) {
    return 0;
  }
  if (read_back(config) != config) std::abort();
  return 0;
}
