// The start of a run, with peers that send any bytes: errors, options, hashes and texts of all
// ranks. Each ends, or throws a UserError or a Fault, which is printed as one line.
#include <cstdlib>

#include "apps/common/launch.h"
#include "apps/common/rank_utils.h"
#include "apps/train/summary.h"
#include "engine/core/error.h"
#include "tests/fuzz/support/script.h"

namespace {

void expect_a_line(const std::exception& error) {
  for (const char c : tw::error_line(error))
    if (static_cast<unsigned char>(c) < 0x20) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::Script script(data, size);
  tw::fuzz::ScriptedCommunicator comm(script, script.number<uint8_t>());
  tw::ParameterArena arena;
  try {
    switch (script.number<uint8_t>() % 4) {
      case 0:
        tw::run_collectively(comm, [] {});
        break;
      case 1:
        tw::check_same_setup(comm, {"density is 0.001", "seed is 1"});
        break;
      case 2:
        tw::check_same_layout(comm, arena);
        break;
      default:
        (void)tw::broadcast_text(comm, "runs/lenet");
    }
  } catch (const tw::UserError& error) {
    expect_a_line(error);
  } catch (const tw::Fault& error) {
    expect_a_line(error);
  }
  return 0;
}
