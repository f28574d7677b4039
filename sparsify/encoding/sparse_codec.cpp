#include "sparsify/encoding/sparse_codec.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ranges>

#include "engine/core/dtype.h"
#include "engine/core/error.h"
#include "engine/ops/half.h"
#include "engine/ops/nonfinite.h"
#include "sparsify/encoding/chunk_indices.h"
#include "sparsify/encoding/rice.h"
#include "sparsify/exchange.h"
#include "sparsify/kernels/sparse_ops.h"

namespace tw {

namespace {

constexpr uint32_t kPacked = uint32_t{1} << 31;  // flag in the leading count

bool shares_by_block(ValueFormat values) {
  return is_scaled(values) && values != ValueFormat::sign;
}

/// Ranks send no NaN or infinity: a gradient that has one is reported instead.
void check_values(std::span<const float> values, int from) {
  if (!ops::any_nonfinite(values)) [[likely]]
    return;
  const auto bad = std::ranges::find_if(values, [](float x) { return !std::isfinite(x); });
  fail<Fault>("[wire] rank {} sent {} as a value", from, *bad);
}

const bool sparse_codec_settings = setting_groups().add(
    {"wire",
     "the byte format of sparse entries",
     {},
     {{"values",
       "f32",
       "type of the values; rounding errors stay in the residual",
       {"f32", "fp16", "bf16", "int8", "int4", "int2", "sign"}},
      {"block", "128", "values that share a scale in int8, int4, int2", {"64", "128", "1024"}},
      {"indices",
       "plain",
       "format of the indices: uint32, gaps in 8 to 12 bits, or 13 bits within "
       "chunks of 4,096; auto: uint32 or gaps",
       {"plain", "packed", "chunked", "auto"}}}});

}  // namespace

SparseCodec::SparseCodec(const Settings& from)
    : values_(value_format(from.text("wire.values"))),
      scaled_(values_,
              shares_by_block(values_) ? static_cast<size_t>(from.integer("wire.block")) : 0) {
  const std::string& indices = from.text("wire.indices");
  if (indices == "packed") indices_ = Indices::packed;
  if (indices == "chunked") indices_ = Indices::chunked;
  if (indices == "auto") indices_ = Indices::shorter;
}

void SparseCodec::round(SparseVector& entries, SparseVector* lost,
                        std::span<const uint32_t> borders,
                        std::optional<RoundingDraws> draws) const {
  if (lost) lost->count = 0;
  if (exact()) return;
  if (lost) lost->reserve(entries.count);
  if (scaled()) {
    entries.drop_zeros();  // they would become the scale
    const auto indices = entries.index_span();
    const std::span<float> values(entries.values.data(), entries.count);
    for (size_t i = 0; lost && i < entries.count; ++i) lost->push(indices[i], values[i]);
    size_t begin = 0;
    const auto round_to = [&](size_t end) {
      scaled_.round(values.subspan(begin, end - begin), draws);
      if (draws) ++draws->message;
      begin = end;
    };
    for (const uint32_t border : borders)
      round_to(static_cast<size_t>(std::ranges::lower_bound(indices, border) - indices.begin()));
    round_to(entries.count);
    if (!lost) return;
    for (size_t i = 0; i < entries.count; ++i) lost->values[i] -= values[i];
    return;
  }
  constexpr size_t kTogether = 512;  // values that are converted together
  std::byte half[kTogether * sizeof(uint16_t)];
  float near[kTogether];
  for (size_t begin = 0; begin < entries.count; begin += kTogether) {
    const size_t n = std::min(kTogether, entries.count - begin);
    ops::narrow(values_, std::span<const float>(&entries.values[begin], n), half);
    ops::widen(values_, half, std::span(near, n));
    for (size_t i = begin; i < begin + n; ++i) {
      const float value = entries.values[i];
      const float rounded = std::isfinite(near[i - begin]) ? near[i - begin] : 0;
      // exact: the difference has no bits below the last bit of `value`
      if (lost) lost->push(entries.indices[i], value - rounded);
      entries.values[i] = rounded;
    }
  }
  entries.drop_zeros();
}

size_t SparseCodec::bound(size_t n) const {
  return sizeof(uint32_t) + value_bytes(n) +
         (indices_ == Indices::plain     ? n * sizeof(uint32_t)
          : indices_ == Indices::chunked ? chunk_bound(n)
                                         : rice_bound(n));
}

size_t SparseCodec::encode(const SparseView& entries, std::byte* out) const {
  const size_t n = entries.indices.size();
  if (indices_ == Indices::plain) return write_plain(entries, out);
  uint32_t head = static_cast<uint32_t>(n) | kPacked;
  const bool chunked = indices_ == Indices::chunked;
  const size_t packed = (chunked ? chunk_encode : rice_encode)(entries.indices, out + sizeof head);
  const bool pays = indices_ != Indices::shorter || packed < n * sizeof(uint32_t);
  if (!pays) head = static_cast<uint32_t>(n);
  std::memcpy(out, &head, sizeof head);
  if (!pays) return sizeof head + write_plain(entries, out + sizeof head);
  write_values(entries.values, out + sizeof head + packed);
  return sizeof head + packed + value_bytes(n);
}

SparseView SparseCodec::decode(ConstBytes bytes, size_t d, int from, SparseVector& decoded) const {
  const auto damaged = [&] {
    fail<Fault>("[wire] rank {} sent {} bytes that are not a sparse vector of length {}", from,
                bytes.size(), d);
  };
  bool packed = false;
  size_t n = 0;
  if (indices_ == Indices::plain) {
    // the most entries that fit
    const auto counts = std::views::iota(size_t{1}, bytes.size() / sizeof(uint32_t) + 1);
    n = static_cast<size_t>(
        std::ranges::partition_point(
            counts, [&](size_t count) { return plain_bytes(count) <= bytes.size(); }) -
        counts.begin());
  } else {
    uint32_t head = 0;
    if (bytes.size() < sizeof head) damaged();
    std::memcpy(&head, bytes.data(), sizeof head);
    bytes = bytes.subspan(sizeof head);
    packed = (head & kPacked) != 0;
    n = head & ~kPacked;
  }
  // each index takes at least one bit, so a damaged count cannot allocate more than the message
  // holds
  const size_t values = value_bytes(n);
  if (n > d || values > bytes.size() || (packed && n > 8 * bytes.size())) damaged();
  const size_t index_bytes = bytes.size() - values;
  if (!packed && index_bytes != n * sizeof(uint32_t)) damaged();

  if (!packed && exact() && reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0) {
    const auto* indices = reinterpret_cast<const uint32_t*>(bytes.data());
    if (!ascend_below({indices, n}, d)) damaged();
    const std::span sent(reinterpret_cast<const float*>(bytes.data() + index_bytes), n);
    check_values(sent, from);
    return {{indices, n}, sent};
  }
  decoded.reserve(n);
  decoded.count = n;
  if (packed) {
    const auto unpack = indices_ == Indices::chunked ? chunk_decode : rice_decode;
    if (!unpack(bytes.first(index_bytes), d, {decoded.indices.data(), n})) damaged();
  } else if (n > 0) {
    std::memcpy(decoded.indices.data(), bytes.data(), index_bytes);
    if (!ascend_below(decoded.index_span(), d)) damaged();
  }
  read_values(bytes.data() + index_bytes, {decoded.values.data(), n});
  check_values(decoded.value_span(), from);
  return decoded.view();
}

uint64_t SparseCodec::expected_bytes(double messages, size_t entries, int ranks, size_t d) const {
  const double n = static_cast<double>(entries) / ranks;
  const double values =
      scaled() ? static_cast<double>(scaled_.bytes(static_cast<size_t>(std::llround(n))))
               : n * static_cast<double>(size_of(values_));
  const double count = indices_ == Indices::plain ? 0 : sizeof(uint32_t);
  return static_cast<uint64_t>(std::llround(messages * (count + index_bytes(n, d) + values)));
}

double SparseCodec::index_bytes(double n, size_t d) const {
  const double plain = n * sizeof(uint32_t), density = n / static_cast<double>(d);
  if (indices_ == Indices::plain || n == 0) return plain;
  const double packed = n * (indices_ == Indices::chunked ? chunk_bits : rice_bits)(density) / 8;
  return indices_ == Indices::shorter ? std::min(packed, plain) : packed;
}

size_t SparseCodec::write_plain(const SparseView& entries, std::byte* out) const {
  const size_t indices = entries.indices.size_bytes();
  if (indices == 0) return 0;
  std::memcpy(out, entries.indices.data(), indices);
  write_values(entries.values, out + indices);
  return indices + value_bytes(entries.values.size());
}

void SparseCodec::write_values(std::span<const float> values, std::byte* out) const {
  if (scaled()) return scaled_.write(values, out);
  if (!exact()) return ops::narrow(values_, values, out);
  if (!values.empty()) std::memcpy(out, values.data(), values.size_bytes());
}

void SparseCodec::read_values(const std::byte* from, std::span<float> values) const {
  if (scaled()) return scaled_.read(from, values);
  if (!exact()) return ops::widen(values_, from, values);
  if (!values.empty()) std::memcpy(values.data(), from, values.size_bytes());
}

}  // namespace tw
