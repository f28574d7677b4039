#include "engine/io/event_file.h"

#include <array>
#include <bit>
#include <charconv>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>

#include "engine/core/error.h"
#include "engine/io/csv.h"

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

// fields of a message: number and wire type, then the value
enum WireType { varint = 0, fixed64 = 1, delimited = 2, fixed32 = 5 };

std::string varint_of(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string key(int field, WireType type) {
  return varint_of(static_cast<uint64_t>(field << 3 | type));
}

std::string field(int number, std::string_view bytes) {
  return key(number, delimited) + varint_of(bytes.size()) + std::string(bytes);
}

std::string field(int number, double value) { return key(number, fixed64) + bytes_of(value); }

std::string field(int number, const std::vector<double>& values) {
  return field(number, std::string_view(reinterpret_cast<const char*>(values.data()),
                                        values.size() * sizeof(double)));
}

// Event: 1 wall_time, 2 step, 3 file_version, 5 summary; Summary: 1 value; Value: 1 tag,
// 2 simple_value, 5 histo; HistogramProto: 1 min, 2 max, 3 num, 4 sum, 5 sum_squares,
// 6 bucket_limit, 7 bucket

std::string event_of(int64_t step, const std::string& what) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  std::string event = field(1, std::chrono::duration<double>(now).count());
  if (step > 0) event += key(2, varint) + varint_of(static_cast<uint64_t>(step));
  return event + what;
}

/// The step of an event of event_of(), which follows the time.
int64_t step_of(std::string_view event) {
  size_t at = kTime;
  uint64_t step = 0;
  if (event.substr(at, 1) != key(2, varint)) return 0;
  for (int shift = 0; ++at < event.size() && shift < 64; shift += 7) {
    step |= static_cast<uint64_t>(event[at] & 0x7f) << shift;
    if (!(event[at] & 0x80)) break;
  }
  return static_cast<int64_t>(step);
}

/// The number of a cell, which may be too small for a normal number: std::stod refuses such ones.
double number_in(const std::string& cell) {
  double value = 0;
  std::from_chars(cell.data(), cell.data() + cell.size(), value);
  return value;
}

constexpr std::string_view kVersion = "brain.Event:2";

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

EventFile::EventFile(const std::filesystem::path& path, int64_t keep_through) {
  const std::string bytes = read_text_if_any(path);
  size_t kept = 0;
  while (const auto data = data_of(std::string_view(bytes).substr(kept))) {
    if (step_of(*data) > keep_through) break;
    kept += kHead + data->size() + kTail;
  }
  if (kept == 0) {
    write_atomically(path, record_of(event_of(0, field(3, kVersion))));
  } else if (std::filesystem::is_symlink(path)) {
    write_atomically(path, bytes.substr(0, kept));  // replaces the link; its target stays
  } else if (kept < bytes.size()) {
    // cut where it is, so that a TensorBoard that reads the file can go on
    std::error_code error;
    do std::filesystem::resize_file(path, kept, error);
    while (error == std::errc::interrupted);
    check<Fault>(!error, "[events] cannot shorten {}: {}", path.string(), error.message());
  }
  out_ = GrowingFile(path, GrowingFile::Start::append);
}

void EventFile::scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values) {
  std::string summary;
  for (const auto& [name, value] : values)
    summary += field(1, field(1, name) + key(2, fixed32) + bytes_of(static_cast<float>(value)));
  write(event_of(step, field(5, summary)));
}

void EventFile::row(int64_t step, const std::string& table, const std::string& header,
                    const std::string& row) {
  const std::vector<std::string> names = csv_cells(header), cells = csv_cells(row);
  std::vector<std::pair<std::string, double>> values;
  for (size_t i = 1; i < names.size() && i < cells.size(); ++i)
    if (!cells[i].empty()) values.emplace_back(table + "/" + names[i], number_in(cells[i]));
  scalars(step, values);
}

void EventFile::histogram(int64_t step, const std::string& name, const Histogram& values) {
  const std::string histo = field(1, values.least) + field(2, values.greatest) +
                            field(3, values.number) + field(4, values.sum) +
                            field(5, values.squares) + field(6, values.ends) +
                            field(7, values.counts);
  write(event_of(step, field(5, field(1, field(1, name) + field(5, histo)))));
}

void EventFile::write(const std::string& event) { out_.write(record_of(event)); }

}  // namespace tw
