// The parts of a record file that its writer and its reader share.
#pragma once

#include <cstdint>

namespace tw::record {

inline constexpr char kMagic[16] = {'t', 'h', 'i', 'n', 'w', 'i', 'r', 'e',
                                    '-', 'r', 'e', 'c', 'o', 'r', 'd', 's'};
inline constexpr uint64_t kVersion = 1;

/// Little-endian, as all machines this runs on.
struct Header {
  char magic[16];
  uint64_t version;
  uint64_t file_bytes;
  uint64_t index_offset;
  uint64_t description_bytes, sample_count, name_bytes;  ///< the parts of the index
  uint64_t index_checksum;
  uint64_t header_checksum;  ///< of the 72 bytes before
};
static_assert(sizeof(Header) == 80);

}  // namespace tw::record
