// LinkCost format: how sparse entries travel. `--set wire.values=bf16 --set wire.indices=packed`.
//
// Values: f32, or rounded to fp16 or bf16. What rounding takes off goes to the residual first, so
// no format loses anything: it only arrives later. Indices, and the bytes of n entries:
//   plain   uint32 each; indices, then values:              n (4 + v) bytes, v = 4 or 2
//   packed  Rice-coded gaps (rice.h) behind a count:        4 + ceil(n b / 8) + n v, b = 11.6 bits
//                                                           at density .001
//   auto    packed where it is shorter, else plain; the count says which
#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"
#include "engine/core/settings.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/kernels/sparse_vector.h"

namespace tw {

class SparseCodec {
 public:
  enum class Values : uint8_t { f32, fp16, bf16 };
  enum class Indices : uint8_t { plain, packed, shorter };

  explicit SparseCodec(const Settings& settings);
  SparseCodec(Values values, Indices indices) : values_(values), indices_(indices) {}

  bool exact() const { return values_ == Values::f32; }

  /// Rounds the entries to what the wire carries; `lost`, if it is wanted, becomes what that takes
  /// off. Entries that overflow or round to zero leave the vector and are lost whole.
  void round(SparseVector& entries, SparseVector* lost = nullptr) const;

  /// Bytes that n entries take at most.
  size_t bound(size_t n) const;
  /// Writes entries that were rounded; returns the bytes written. `out` has room for bound(n).
  size_t encode(const SparseView& entries, std::byte* out) const;
  /// The entries that `encode` wrote into exactly these bytes, read into `room` or, where they can
  /// be used as they lie, in place. Throws Fault, naming `from`, unless the indices ascend and lie
  /// below d.
  SparseView decode(ConstBytes bytes, size_t d, int from, SparseVector& room) const;

  /// Bytes of `messages` messages with entries / ranks entries each, spread evenly over d places:
  /// exact for plain indices.
  uint64_t expected_bytes(double messages, size_t entries, int ranks, size_t d) const;

 private:
  size_t value_bytes() const { return exact() ? sizeof(float) : sizeof(uint16_t); }
  size_t write_plain(const SparseView& entries, std::byte* out) const;
  void write_values(std::span<const float> values, std::byte* out) const;
  void read_values(const std::byte* from, std::span<float> values) const;

  Values values_ = Values::f32;
  Indices indices_ = Indices::plain;
};

}  // namespace tw
