// Sparse messages: any bytes are a Fault, or a control word and ascending, finite entries that
// survive writing and reading. The first byte selects the format, the next two are the length.
#include <cmath>
#include <cstdlib>

#include "sparsify/encoding/sparse_message.h"
#include "tests/fuzz/support/script.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Indices = tw::SparseCodec::Indices;
  tw::fuzz::Script script(data, size);
  const int format = script.number<uint8_t>();
  const size_t d = script.number<uint16_t>();
  constexpr tw::ValueFormat kValues[] = {tw::ValueFormat::f32, tw::ValueFormat::fp16,
                                         tw::ValueFormat::bf16};
  constexpr Indices kIndices[] = {Indices::plain, Indices::packed, Indices::shorter};
  const tw::SparseCodec codec(kValues[format % 3], kIndices[format / 3 % 3]);
  // a copy of its own size, so that the sanitizer sees its ends
  const std::vector<uint8_t> block(script.rest().begin(), script.rest().end());
  tw::SparseVector decoded, again;
  tw::Control control;
  try {
    const tw::SparseView entries =
        tw::read_block(codec, std::as_bytes(std::span(block)), 1, d, control, decoded);
    for (size_t i = 0; i < entries.indices.size(); ++i)
      if (entries.indices[i] >= d || (i > 0 && entries.indices[i] <= entries.indices[i - 1]) ||
          !std::isfinite(entries.values[i]))
        std::abort();
    std::vector<std::byte> memory;
    const tw::ConstBytes written = tw::write_block(codec, {}, entries, memory);
    if (written.size() > tw::block_bound(codec, entries.indices.size())) std::abort();
    const tw::SparseView same = tw::read_block(codec, written, 1, d, control, again);
    if (!std::ranges::equal(same.indices, entries.indices) ||
        !std::ranges::equal(same.values, entries.values))
      std::abort();
  } catch (const tw::Fault&) {
  }
  return 0;
}
