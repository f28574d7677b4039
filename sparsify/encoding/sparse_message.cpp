#include "sparsify/encoding/sparse_message.h"

#include <cstring>

namespace tw {

ConstBytes write_block(const SparseCodec& codec, const Control& control, const SparseView& entries,
                       std::vector<std::byte>& memory) {
  const size_t bound = block_bound(codec, entries.indices.size());
  if (memory.size() < bound) memory.resize(bound + bound / 2);
  const ControlWord word = pack(control);
  std::memcpy(memory.data(), &word, sizeof word);
  return {memory.data(), sizeof word + codec.encode(entries, memory.data() + sizeof word)};
}

SparseView read_block(const SparseCodec& codec, ConstBytes block, int rank, size_t d,
                      Control& control, SparseVector& room) {
  ControlWord word;
  check<Fault>(block.size() >= sizeof word,
               "[wire] rank {} sent a block of {} bytes; its control word alone has {}", rank,
               block.size(), sizeof word);
  std::memcpy(&word, block.data(), sizeof word);
  merge(control, rank, word);
  return codec.decode(block.subspan(sizeof word), d, rank, room);
}

void ResidualReturn::rounding(Context& ctx, const SparseCodec& codec, SparseVector& entries,
                              std::span<float> residual) {
  codec.round(entries, &entries_);
  if (!residual.empty()) scatter_add(ctx, entries_.view(), residual);
}

void ResidualReturn::missing(Context& ctx, const SparseView& mine, std::span<const uint32_t> kept,
                             std::span<float> residual) {
  if (residual.empty()) return;
  entries_.count = 0;
  entries_.reserve(mine.indices.size());
  auto next = kept.begin();
  for (size_t i = 0; i < mine.indices.size(); ++i) {
    const uint32_t index = mine.indices[i];
    while (next != kept.end() && *next < index) ++next;
    if (next == kept.end() || *next != index) entries_.push(index, mine.values[i]);
  }
  scatter_add(ctx, entries_.view(), residual);
}

}  // namespace tw
