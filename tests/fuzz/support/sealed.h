// For fuzzers of files with checksums, which reject nearly every input. Each input is read
// unchanged, and again with repaired checksums, to reach the code after the check.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "engine/core/error.h"
#include "tests/fuzz/support/input_file.h"

namespace tw::fuzz {

/// read(path) may throw UserError; mend(bytes) repairs the checksums where it can.
template <class Read, class Mend>
void read_both_ways(const uint8_t* data, size_t size, const Read& read, const Mend& mend) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const bool mended : {false, true}) {
    if (mended) mend(bytes);
    const InputFile file(bytes);
    try {
      read(file.path());
    } catch (const UserError&) {
    }
  }
}

}  // namespace tw::fuzz
