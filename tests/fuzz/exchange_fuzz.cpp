// Every exchange, with peers that send any bytes: a step ends, or throws a Fault. The first byte
// selects a sparsifier and a setting, the next the rank, the others are the messages. With
// TW_FUZZ_SEEDS=FOLDER, writes first inputs there: the messages of an honest run of each variant.
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/fuzz/support/script.h"
#include "tests/support/ranks/sgd_rig.h"

namespace {

const std::vector<tw::Variant>& all_variants() {
  static const std::vector<tw::Variant> all = tw::variants();
  return all;
}

void run_steps(tw::Communicator& comm, const tw::Variant& variant) {
  tw::Context ctx;
  tw::SgdRig rig(ctx, comm, 100, {.sparsifier = variant.sparsifier}, variant.settings);
  for (uint64_t step = 0; step < 2; ++step)
    rig.step(tw::exact_kinds().front(), {.step = step, .density = 0.1});
}

void write_seeds(const std::filesystem::path& folder) {
  for (size_t i = 0; i < all_variants().size() && i < 256; ++i)
    tw::run_on_threads(2, [&](tw::Communicator& comm) {
      tw::fuzz::RecordingCommunicator recording(comm);
      run_steps(recording, all_variants()[i]);
      if (comm.rank() > 0) return;
      std::ofstream out(folder / fmt::format("honest-{}", i), std::ios::binary);
      out << static_cast<char>(i) << '\0' << recording.script();
    });
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  if (const char* folder = std::getenv("TW_FUZZ_SEEDS")) {
    write_seeds(folder);
    std::exit(0);
  }
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::Script script(data, size);
  const tw::Variant& variant = all_variants()[script.number<uint8_t>() % all_variants().size()];
  tw::fuzz::ScriptedCommunicator comm(script, script.number<uint8_t>());
  try {
    run_steps(comm, variant);
  } catch (const tw::Fault&) {
  }
  return 0;
}
