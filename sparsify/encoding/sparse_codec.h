// SparseCodec: the byte format of sparse entries. `--set wire.values=bf16 --set
// wire.indices=packed`.
//
// Values: f32, or rounded to fp16, bf16, or with scales to int8, int4, int2, sign
// (scaled_values.h; `wire.block` values share a scale, or in `sign` all of a message). Rounding
// errors are added to the residual, so later steps send them. Indices, and the bytes of n entries
// whose values take v bytes (4 n, 2 n, or a part of n and the scales):
//   plain   uint32 each; indices, then values:              4 n + v
//   packed  a count and Rice-coded gaps (rice.h):           4 + ceil(n b / 8) + v, b = 11.5 bits
//                                                           at density .001
//   chunked a count and positions in chunks of 4,096 (chunk_indices.h):
//                                                           4 + 13 n / 8 + v + d / 32,768
//   auto    packed if that is shorter, else plain; the count tells which
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"
#include "comm/cost_model.h"
#include "engine/core/dtype.h"
#include "engine/core/settings.h"
#include "sparsify/encoding/scaled_values.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

class SparseCodec {
 public:
  enum class Indices : uint8_t { plain, packed, chunked, shorter };

  explicit SparseCodec(const Settings& settings);
  SparseCodec(ValueFormat values, Indices indices, size_t block = 128)
      : values_(values), indices_(indices), scaled_(values, block) {}

  bool exact() const { return values_ == ValueFormat::f32; }
  /// Whether entries are rounded for one message: a part of them is rounded anew.
  bool scaled() const { return is_scaled(values_); }

  /// Rounds the values to the format. `lost`, if given, receives the rounding errors. Entries that
  /// overflow or round to zero are removed; their error is the whole value. `borders`: ascending
  /// indices at which a new message begins. `draws`: of the first message, the others have the
  /// numbers that follow; formats without a scale round to nearest.
  void round(SparseVector& entries, SparseVector* lost = nullptr,
             std::span<const uint32_t> borders = {}, std::optional<RoundingDraws> draws = {}) const;

  /// The most bytes that n entries take.
  size_t bound(size_t n) const;
  /// Writes rounded entries; returns the bytes written. `out` holds at least bound(n) bytes.
  size_t encode(const SparseView& entries, std::byte* out) const;
  /// Decodes the bytes of one `encode`. The result points into `bytes` if possible, else into
  /// `decoded`. Throws Fault, which names the rank `from`, unless the indices ascend and are below
  /// d and the values are finite.
  SparseView decode(ConstBytes bytes, size_t d, int from, SparseVector& decoded) const;

  /// Bytes of `messages` messages with entries / ranks entries each, at random indices below d;
  /// exact for plain indices.
  uint64_t expected_bytes(double messages, size_t entries, int ranks, size_t d) const;
  /// Seconds to send one of k such entries.
  double entry_seconds(const LinkCost& link, size_t k, size_t d) const {
    if (k == 0) return 0;
    return link.beta * (static_cast<double>(expected_bytes(1, k, 1, d)) / static_cast<double>(k)) /
           4;
  }

 private:
  /// Expected bytes of n indices below d, without a count.
  double index_bytes(double n, size_t d) const;
  size_t value_bytes(size_t n) const { return scaled() ? scaled_.bytes(n) : n * size_of(values_); }
  size_t plain_bytes(size_t n) const { return n * sizeof(uint32_t) + value_bytes(n); }
  size_t write_plain(const SparseView& entries, std::byte* out) const;
  void write_values(std::span<const float> values, std::byte* out) const;
  void read_values(const std::byte* from, std::span<float> values) const;

  ValueFormat values_ = ValueFormat::f32;
  Indices indices_ = Indices::plain;
  ScaledValues scaled_;
};

}  // namespace tw
