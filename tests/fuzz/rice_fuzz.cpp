// Packed indices: any bytes are refused, or give ascending indices that survive writing and
// reading. The first two bytes are the number of indices, the next four the length.
#include <cstdlib>
#include <vector>

#include "sparsify/encoding/rice.h"
#include "tests/fuzz/support/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::Script script(data, size);
  const size_t n = script.number<uint16_t>() % 4096, d = script.number<uint32_t>();
  const std::vector<uint8_t> code(script.rest().begin(), script.rest().end());
  std::vector<uint32_t> indices(n), again(n);
  if (!tw::rice_decode(std::as_bytes(std::span(code)), d, indices)) return 0;
  for (size_t i = 0; i < n; ++i)
    if (indices[i] >= d || (i > 0 && indices[i] <= indices[i - 1])) std::abort();
  std::vector<std::byte> written(tw::rice_bound(n));
  written.resize(tw::rice_encode(indices, written.data()));
  if (!tw::rice_decode(written, d, again) || again != indices) std::abort();
  return 0;
}
