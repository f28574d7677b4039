// Any bytes: a record file whose samples can be read, or a UserError.
#include <cstddef>
#include <cstring>
#include <vector>

#include "data/record_file.h"
#include "data/record_format.h"
#include "engine/hash.h"
#include "tests/fuzz/input_file.h"

namespace {

/// Checksums stop nearly every change at the door: they are made right, to test what is behind.
void mend(std::vector<uint8_t>& bytes) {
  tw::record::Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, tw::record::kMagic, sizeof header.magic);
  header.version = tw::record::kVersion;
  header.file_bytes = bytes.size();
  const auto all = std::as_bytes(std::span(bytes));
  if (header.index_offset <= bytes.size())
    header.index_checksum = tw::checksum(all.subspan(header.index_offset));
  const auto front = std::as_bytes(std::span(&header, 1));
  header.header_checksum = tw::checksum(front.first(offsetof(tw::record::Header, header_checksum)));
  std::memcpy(bytes.data(), &header, sizeof header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::vector<uint8_t> bytes(data, data + size);
  if (size % 2 == 0) mend(bytes);
  const tw::fuzz::InputFile file(bytes.data(), bytes.size());
  try {
    const tw::RecordFile records(file.path());
    for (size_t i = 0; i < records.train_size() + records.val_size(); ++i) {
      (void)records.name(i);
      (void)records.label(i);
      try {
        (void)records.read(i);
      } catch (const tw::JpegError&) {
      }
    }
    (void)records.storage_order(0, records.train_size());
  } catch (const tw::UserError&) {
  }
  return 0;
}
