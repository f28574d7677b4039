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
                      Control& control, SparseVector& decoded) {
  ControlWord word;
  check<Fault>(block.size() >= sizeof word,
               "[wire] rank {} sent a block of {} bytes; its control word alone has {}", rank,
               block.size(), sizeof word);
  std::memcpy(&word, block.data(), sizeof word);
  merge(control, rank, word);
  return codec.decode(block.subspan(sizeof word), d, rank, decoded);
}

}  // namespace tw
