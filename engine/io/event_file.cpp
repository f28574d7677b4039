#include "engine/io/event_file.h"

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/core/error.h"
#include "engine/core/text.h"
#include "engine/io/protobuf.h"

namespace tw {

namespace {

static_assert(std::endian::native == std::endian::little);

template <class T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

template <class T>
T value_at(std::string_view bytes, size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// CRC-32C (Castagnoli), turned and shifted as these files want it.
uint32_t masked_checksum(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < made.size(); ++i) {
      made[i] = i;
      for (int bit = 0; bit < 8; ++bit) made[i] = made[i] >> 1 ^ (made[i] & 1 ? 0x82f63b78u : 0);
    }
    return made;
  }();
  uint32_t crc = 0xffffffff;
  for (const char byte : bytes) crc = crc >> 8 ^ table[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return std::rotr(~crc, 15) + 0xa282ead8u;
}

constexpr size_t kHead = 12, kTail = 4;  // length and its checksum; checksum of the data
constexpr size_t kTime = 9;              // the field with which each event begins

std::string record_of(const std::string& data) {
  const std::string length = bytes_of<uint64_t>(data.size());
  return length + bytes_of(masked_checksum(length)) + data + bytes_of(masked_checksum(data));
}

/// The data of the record at the start; nothing if it is damaged, not complete or no event.
std::optional<std::string_view> data_of(std::string_view bytes) {
  if (bytes.size() < kHead + kTail) return {};
  const uint64_t length = value_at<uint64_t>(bytes, 0);
  if (value_at<uint32_t>(bytes, 8) != masked_checksum(bytes.substr(0, 8))) return {};
  if (length < kTime || length > bytes.size() - kHead - kTail) return {};
  const std::string_view data = bytes.substr(kHead, length);
  if (value_at<uint32_t>(bytes, kHead + length) != masked_checksum(data)) return {};
  return data;
}

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary; Summary: 1 value; Value: 1 tag,
// 2 simple_value, 5 histo; HistogramProto: 1 min, 2 max, 3 num, 4 sum, 5 sum_squares,
// 6 bucket_limit, 7 bucket
constexpr char kStepTag = 2 << 3;  // field 2, an integer

/// An event that lacks what happened.
ProtobufMessage event_of(int64_t step) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  ProtobufMessage event;
  event.real(1, std::chrono::duration<double>(now).count());
  if (step > 0) event.number(2, step);
  return event;
}

/// The step of an event of event_of(), which follows the time.
int64_t step_of(std::string_view event) {
  size_t at = kTime;
  uint64_t step = 0;
  if (at >= event.size() || event[at] != kStepTag) return 0;
  for (int shift = 0; ++at < event.size() && shift < 64; shift += 7) {
    step |= static_cast<uint64_t>(event[at] & 0x7f) << shift;
    if (!(event[at] & 0x80)) break;
  }
  return static_cast<int64_t>(step);
}

}  // namespace

void Histogram::add(double from, double to, double count) {
  if (ends.empty()) least = from;
  // a bin begins where the one before ends
  if (ends.empty() || ends.back() < from) {
    ends.push_back(from);
    counts.push_back(0);
  }
  ends.push_back(to);
  counts.push_back(count);
  greatest = to;
  number += count;
}

EventFile::EventFile(const std::filesystem::path& path, int64_t keep_through,
                     const std::string& again) {
  const std::string prefix = again + "/";
  const auto repeated = [&](std::string_view event) {
    return !again.empty() && step_of(event) == keep_through &&
           event.find(prefix) != std::string_view::npos;
  };
  const std::string bytes = read_text_if_any(path);
  size_t kept = 0;
  while (const auto data = data_of(std::string_view(bytes).substr(kept))) {
    if (step_of(*data) > keep_through || repeated(*data)) break;
    kept += kHead + data->size() + kTail;
  }
  if (kept == 0) {
    ProtobufMessage first = event_of(0);
    first.bytes(3, "brain.Event:2");
    write_atomically(path, record_of(first.encoded()));
  } else if (std::filesystem::is_symlink(path)) {
    write_atomically(path, bytes.substr(0, kept));  // replaces the link; its target stays
  } else if (kept < bytes.size()) {
    // cut where it is, so that a TensorBoard that reads the file can go on
    shorten_file(path, kept);
  }
  out_ = GrowingFile(path, GrowingFile::Start::append);
}

void EventFile::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  ProtobufMessage summary;
  for (const auto& [name, number] : values) {
    ProtobufMessage value;
    value.bytes(1, name);
    value.real(2, static_cast<float>(number));
    summary.message(1, value);
  }
  write(step, summary);
}

void EventFile::row(int64_t step, const std::string& table, const std::string& header,
                    const std::string& row) {
  const std::vector<std::string> names = split(header, ','), cells = split(row, ',');
  std::vector<std::pair<std::string, double>> values;
  for (size_t i = 1; i < names.size() && i < cells.size(); ++i)
    if (!cells[i].empty())
      values.emplace_back(table + "/" + names[i], number_in<double>(cells[i]).value_or(0));
  scalars(step, values);
}

void EventFile::histogram(int64_t step, const std::string& name, const Histogram& values) {
  ProtobufMessage histo, value, summary;
  histo.real(1, values.least);
  histo.real(2, values.greatest);
  histo.real(3, values.number);
  histo.real(4, values.sum);
  histo.real(5, values.squares);
  histo.reals(6, values.ends);
  histo.reals(7, values.counts);
  value.bytes(1, name);
  value.message(5, histo);
  summary.message(1, value);
  write(step, summary);
}

void EventFile::write(int64_t step, const ProtobufMessage& summary) {
  ProtobufMessage event = event_of(step);
  event.message(5, summary);
  out_.write(record_of(event.encoded()));
}

}  // namespace tw
