// Every exchange, with peers that send any bytes: a step ends, or throws a Fault. The first byte
// selects a sparsifier and a setting, the next the rank, the others are the messages.
#include "tests/fuzz/script.h"
#include "tests/support/ranks/sgd_rig.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::vector<tw::Variant> variants = tw::variants();
  constexpr size_t kLength = 100;
  tw::fuzz::Script script(data, size);
  const tw::Variant& variant = variants[script.number<uint8_t>() % variants.size()];
  tw::fuzz::ScriptedCommunicator comm(script, script.number<uint8_t>());
  tw::Context ctx;
  tw::SgdRig rig(ctx, comm, kLength, {.sparsifier = variant.sparsifier}, variant.settings);
  try {
    for (uint64_t step = 0; step < 2; ++step)
      rig.step(tw::exact_kinds().front(), {.step = step, .density = 0.1});
  } catch (const tw::Fault&) {
  }
  return 0;
}
