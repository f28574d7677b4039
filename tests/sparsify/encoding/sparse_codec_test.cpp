// The byte formats: decoding gives the rounded entries, and damaged bytes are detected.

#include "sparsify/encoding/sparse_codec.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/error.h"
#include "engine/core/rng.h"
#include "sparsify/encoding/rice.h"
#include "sparsify/exchange.h"

namespace tw {
namespace {

using Values = ValueFormat;
using Indices = SparseCodec::Indices;

std::vector<SparseCodec> formats() {
  std::vector<SparseCodec> all;
  for (Values values : {Values::f32, Values::fp16, Values::bf16, Values::int8, Values::int4,
                        Values::int2, Values::sign})
    for (Indices indices : {Indices::plain, Indices::packed, Indices::chunked, Indices::shorter})
      all.emplace_back(values, indices);
  return all;
}

/// A vector in which each of d indices occurs with probability `density`.
SparseVector random_entries(size_t d, double density, uint64_t seed) {
  SparseVector v;
  const Philox philox(seed, Purpose::test);
  for (uint32_t i = 0; i < d; ++i) {
    const auto r = philox(i);
    if (r[0] >= density * 0x1p32) continue;
    v.reserve(v.count + 1);
    v.indices[v.count] = i;
    v.values[v.count++] = normal(r[1], r[2])[0] * 1e-2f;
  }
  return v;
}

std::vector<std::byte> encoded(const SparseCodec& codec, const SparseView& entries) {
  std::vector<std::byte> bytes(codec.bound(entries.indices.size()));
  bytes.resize(codec.encode(entries, bytes.data()));
  return bytes;
}

void expect_round_trip(const SparseCodec& codec, SparseVector v, size_t d) {
  codec.round(v);
  const std::vector<std::byte> bytes = encoded(codec, v.view());
  SparseVector room;
  const SparseView back = codec.decode(bytes, d, 0, room);
  EXPECT_TRUE(std::ranges::equal(back.indices, v.index_span()));
  EXPECT_TRUE(std::ranges::equal(back.values, v.value_span()));
}

TEST(SparseCodec, RoundTripsAtEveryDensity) {
  for (const SparseCodec& codec : formats())
    for (double density : {0.0, 1e-4, 1e-3, 0.01, 0.3, 1.0})
      for (size_t d : {1, 2, 127, 128, 129, 5000, 70'000})
        expect_round_trip(codec, random_entries(d, density, d), d);
}

TEST(SparseCodec, RoundTripsUnevenIndices) {
  constexpr size_t d = UINT32_MAX;
  for (Indices indices : {Indices::plain, Indices::packed, Indices::chunked, Indices::shorter}) {
    const SparseCodec codec(Values::f32, indices);
    SparseVector v;
    v.reserve(300);
    // runs without gaps between jumps of any size
    for (uint32_t i = 0, at = 0; i < 300; ++i, at += i % 50 == 0 ? 1u << (i / 12) : 1) {
      v.indices[v.count] = at;
      v.values[v.count++] = static_cast<float>(i + 1);
    }
    v.indices[299] = UINT32_MAX - 1;
    SparseVector room;
    const std::vector<std::byte> bytes = encoded(codec, v.view());
    EXPECT_TRUE(std::ranges::equal(codec.decode(bytes, d, 0, room).indices, v.index_span()));
  }
}

TEST(SparseCodec, ReturnsRoundingErrors) {
  const std::vector<float> values{1.0f,     1.001f, -3.14159f, 65504.0f, 1e5f,
                                  -3.4e38f, 1e-9f,  6e-8f,     1e-42f,   0.1f};
  for (Values kind : {Values::fp16, Values::bf16}) {
    const SparseCodec codec(kind, Indices::plain);
    SparseVector v;
    v.reserve(values.size());
    for (uint32_t i = 0; i < values.size(); ++i) v.indices[i] = 2 * i;
    std::ranges::copy(values, v.values.begin());
    v.count = values.size();
    std::vector<float> sum(2 * values.size());
    SparseVector lost;
    codec.round(v, &lost);
    for (size_t i = 0; i < lost.count; ++i) sum[lost.indices[i]] = lost.values[i];
    for (size_t i = 0; i < v.count; ++i) {
      EXPECT_TRUE(std::isfinite(v.values[i]) && v.values[i] != 0);
      EXPECT_NEAR(v.values[i] / values[v.indices[i] / 2], 1, kind == Values::fp16 ? 0.2 : 0.004);
      sum[v.indices[i]] += v.values[i];
    }
    for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(sum[2 * i], values[i]) << i;
    // entries that overflow or become zero are not sent
    EXPECT_EQ(v.count, kind == Values::fp16 ? 6u : 8u);
  }
}

TEST(SparseCodec, RoundsWithoutReturningErrors) {
  SparseVector v = random_entries(1000, 0.1, 1);
  const size_t count = v.count;
  SparseCodec(Values::bf16, Indices::plain).round(v);
  EXPECT_EQ(v.count, count);
}

TEST(SparseCodec, ScaledValuesLeaveZerosOut) {
  for (Values kind : {Values::sign, Values::int8}) {
    SparseVector v, lost;
    v.reserve(3);
    v.push(1, 0);
    v.push(4, -2);
    v.push(7, 0);
    SparseCodec(kind, Indices::plain).round(v, &lost);
    EXPECT_TRUE(v.count == 1 && v.indices[0] == 4 && v.values[0] == -2);
  }
}

TEST(SparseCodec, DrawsDifferByMessage) {
  SparseVector v;
  v.reserve(128);
  for (uint32_t i = 0; i < 128; ++i) v.push(i, i % 2 == 0 ? 4.0f : 3.0f);
  SparseCodec(Values::int2, Indices::plain)
      .round(v, nullptr, std::vector<uint32_t>{64}, RoundingDraws{Philox(1, Purpose::rounding)});
  EXPECT_FALSE(std::equal(v.values.begin(), v.values.begin() + 64, v.values.begin() + 64));
}

TEST(SparseCodec, HasTheDocumentedSize) {
  const SparseVector v = random_entries(1 << 20, 1e-3, 7);
  const double n = static_cast<double>(v.count);
  const auto per_entry = [&](Values values, Indices indices) {
    return static_cast<double>(encoded(SparseCodec(values, indices), v.view()).size()) / n;
  };
  EXPECT_EQ(per_entry(Values::f32, Indices::plain), 8);
  EXPECT_EQ(per_entry(Values::bf16, Indices::plain), 6);
  EXPECT_EQ(per_entry(Values::fp16, Indices::plain), 6);
  const double packed = per_entry(Values::bf16, Indices::packed);
  EXPECT_EQ(packed, per_entry(Values::bf16, Indices::shorter));
  EXPECT_LE(packed, 3.6);
  // at density 1/1000 an index has an entropy of log2(1000 e) bits
  const double entropy = std::log2(1000 * std::exp(1.0));
  EXPECT_LE(8 * (packed - 2), 1.02 * entropy);
  EXPECT_NEAR(8 * (packed - 2), rice_bits(1e-3), 0.1);
  printf("density .001: %.3f bytes an entry with bf16; indices %.2f bits, entropy %.2f\n", packed,
         8 * (packed - 2), entropy);
}

TEST(SparseCodec, ChunksTake12BitsAnIndexAndOneForEachEntryAndChunk) {
  constexpr uint32_t chunks = 256, each = 64;
  SparseVector v;
  v.reserve(chunks * each);
  for (uint32_t i = 0; i < chunks * each; ++i) v.push(i / each * 4096 + i % each * 61 + 7, 1);
  const std::vector<std::byte> bytes =
      encoded(SparseCodec(Values::bf16, Indices::chunked), v.view());
  // behind the last entry no chunk follows
  EXPECT_EQ(bytes.size(), 4 + (12 * v.count + v.count + chunks - 1 + 7) / 8 + 2 * v.count);
  // position 7 of 12 bits, then 68
  EXPECT_EQ(bytes[4], std::byte{7});
  EXPECT_EQ(bytes[5], std::byte{0x40});
  EXPECT_EQ(bytes[6], std::byte{4});
  const SparseCodec codec(Values::bf16, Indices::chunked);
  EXPECT_NEAR(static_cast<double>(codec.expected_bytes(1, v.count, 1, chunks * 4096)),
              static_cast<double>(bytes.size()), 2);
}

TEST(SparseCodec, AutoIsNeverMuchLongerThanPlain) {
  for (size_t n : {0, 1, 2, 5}) {
    SparseVector v;
    v.reserve(n + 1);
    for (uint32_t i = 0; i < n; ++i) v.indices[i] = i * 0x20000000u, v.values[i] = 1;
    v.count = n;
    EXPECT_LE(encoded(SparseCodec(Values::f32, Indices::shorter), v.view()).size(), 8 * n + 4);
  }
}

TEST(SparseCodec, RejectsDamagedBytesAndNeverReadsBeyondThem) {
  constexpr size_t d = 3000;
  const Philox philox(9, Purpose::test);
  size_t told = 0, total = 0;
  for (const SparseCodec& codec : formats()) {
    SparseVector v = random_entries(d, 0.05, 3);
    codec.round(v);
    const std::vector<std::byte> whole = encoded(codec, v.view());
    for (uint32_t trial = 0; trial < 3000; ++trial) {
      const auto r = philox(trial);
      std::vector<std::byte> bytes = whole;
      if (r[0] % 3 == 0) bytes.resize(r[1] % (whole.size() + 1));
      for (uint32_t flips = r[0] % 4; flips > 0 && !bytes.empty(); --flips) {
        const auto s = philox(trial, flips);
        // mostly in the header and the indices
        bytes[s[0] % (s[1] % 2 ? bytes.size() : std::min<size_t>(bytes.size(), 16))] ^=
            std::byte(1 << s[2] % 8);
      }
      // an exact copy, so that sanitizers detect reads beyond it
      const auto exactly = std::make_unique<std::byte[]>(bytes.size());
      std::ranges::copy(bytes, exactly.get());
      ++total;
      try {
        SparseVector room;
        const SparseView got = codec.decode({exactly.get(), bytes.size()}, d, 1, room);
        EXPECT_EQ(got.indices.size(), got.values.size());
        for (size_t i = 0; i < got.indices.size(); ++i) {
          EXPECT_LT(got.indices[i], d);
          EXPECT_TRUE(i == 0 || got.indices[i - 1] < got.indices[i]);
        }
        EXPECT_LE(room.capacity(), d);
      } catch (const Fault& fault) {
        EXPECT_NE(std::string(fault.what()).find("[wire] rank 1 sent"), std::string::npos);
        ++told;
      }
    }
  }
  EXPECT_GT(told, total / 10);
}

}  // namespace
}  // namespace tw
