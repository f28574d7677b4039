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
  using enum tw::ValueFormat;
  constexpr tw::ValueFormat kValues[] = {f32, fp16, bf16, int8, int4, int2, sign};
  constexpr Indices kIndices[] = {Indices::plain, Indices::packed, Indices::shorter,
                                  Indices::chunked};
  const tw::SparseCodec codec(kValues[format % 7], kIndices[format / 7 % 4]);
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
    tw::SparseVector rounded;  // a sender rounds: its scales are those of its values
    rounded.reserve(entries.indices.size());
    for (size_t i = 0; i < entries.indices.size(); ++i)
      rounded.push(entries.indices[i], entries.values[i]);
    if (codec.scaled()) codec.round(rounded);
    const tw::ConstBytes written = tw::write_block(codec, {}, rounded.view(), memory);
    if (written.size() > tw::block_bound(codec, entries.indices.size())) std::abort();
    const tw::SparseView same = tw::read_block(codec, written, 1, d, control, again);
    if (!std::ranges::equal(same.indices, rounded.index_span()) ||
        !std::ranges::equal(same.values, rounded.value_span()))
      std::abort();
  } catch (const tw::Fault&) {
  }
  return 0;
}
