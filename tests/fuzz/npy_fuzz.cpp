// Any bytes give the elements of an array that is whole in the file, or a UserError.
#include <cstdlib>

#include "apps/common/npy.h"
#include "engine/core/error.h"
#include "tests/fuzz/support/input_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tw::fuzz::InputFile file({reinterpret_cast<const char*>(data), size});
  try {
    if (tw::read_npy(file.path()).size() * sizeof(float) > size) std::abort();
  } catch (const tw::UserError&) {
  }
  return 0;
}
