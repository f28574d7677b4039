// Constants and header of record files, for their writer and their reader.
#pragma once

#include <cstdint>

namespace tw::record {

inline constexpr char kMagic[16] = {'t', 'h', 'i', 'n', 'w', 'i', 'r', 'e',
                                    '-', 'r', 'e', 'c', 'o', 'r', 'd', 's'};
inline constexpr uint64_t kVersion = 1;

/// Little-endian.
struct Header {
  char magic[16];
  uint64_t version;
  uint64_t file_bytes;
  uint64_t index_offset;
  uint64_t description_bytes, sample_count, name_bytes;  ///< sizes of the parts of the index
  uint64_t index_checksum;
  uint64_t header_checksum;  ///< of the first 72 bytes
};
static_assert(sizeof(Header) == 80);

}  // namespace tw::record
