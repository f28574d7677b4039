// Any bytes give a record file whose samples can be read, or a UserError.
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/imagenet/record_file.h"
#include "data/imagenet/record_format.h"
#include "engine/core/hash.h"
#include "tests/fuzz/support/sealed.h"

namespace {

using tw::record::Header;
using Sample = tw::RecordFile::Sample;

/// Repairs the checksums of the samples that are inside the file.
void mend_samples(std::string& bytes, const Header& header) {
  const auto all = std::as_bytes(std::span(bytes));
  const size_t begin = header.index_offset + header.description_bytes;
  for (size_t i = 0; i < header.sample_count; ++i) {
    const size_t at = begin + i * sizeof(Sample);
    if (at > bytes.size() || bytes.size() - at < sizeof(Sample)) return;
    Sample sample;
    std::memcpy(&sample, &bytes[at], sizeof sample);
    if (sample.offset > bytes.size() || sample.bytes > bytes.size() - sample.offset) continue;
    sample.checksum = tw::checksum(all.subspan(sample.offset, sample.bytes));
    std::memcpy(&bytes[at], &sample, sizeof sample);
  }
}

void mend(std::string& bytes) {
  Header header;
  if (bytes.size() < sizeof header) return;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, tw::record::kMagic, sizeof header.magic);
  header.version = tw::record::kVersion;
  header.file_bytes = bytes.size();
  if (header.index_offset <= bytes.size() && header.description_bytes <= bytes.size()) {
    mend_samples(bytes, header);
    header.index_checksum =
        tw::checksum(std::as_bytes(std::span(bytes)).subspan(header.index_offset));
  }
  const auto front = std::as_bytes(std::span(&header, 1));
  header.header_checksum = tw::checksum(front.first(offsetof(Header, header_checksum)));
  std::memcpy(bytes.data(), &header, sizeof header);
}

/// Uses the training or the validation samples as a run does.
void use(const tw::ImageSource& source) {
  static tw::ImageDecoder decoder;
  std::vector<std::byte> buffer;
  if (source.size() > 0) source.storage()->will_need(0, source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    (void)source.name(i);
    (void)source.label(i);
    try {
      const auto file = source.read(i, buffer);
      // any number of samples may share one image that takes seconds
      if (i < 2) {
        const auto size = decoder.open(file);
        decoder.decode({0, 0, double(size.width), double(size.height)}, 32, 32);
      }
    } catch (const tw::ImageError&) {
    }
  }
}

void read_file(const std::string& path) {
  const auto records = std::make_shared<const tw::RecordFile>(path);
  for (const bool training : {true, false}) use(*tw::record_source(records, training));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::read_both_ways(data, size, read_file, mend);
  return 0;
}
