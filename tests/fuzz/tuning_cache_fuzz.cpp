// The tuning_cache.json of a resumed run: any bytes are read or refused with a UserError.
#include "apps/train/tuning_cache.h"
#include "comm/transports.h"
#include "engine/core/error.h"
#include "tests/fuzz/support/input_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const tw::fuzz::InputFolder folder("tuning_cache");
  static const auto comm = tw::make_self_communicator();
  folder.write("tuning_cache.json", {reinterpret_cast<const char*>(data), size});
  tw::Context ctx;
  try {
    tw::load_tuning_cache(ctx, *comm, folder.path());
  } catch (const tw::UserError&) {
  }
  return 0;
}
