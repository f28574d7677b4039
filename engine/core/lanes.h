// Lanes: elements that are computed together, in vectors of one instruction set.
// each_instruction_set.h includes this file once for each set.

namespace tw::TW_CPU {

/// Bytes of a vector register.
inline constexpr size_t kVectorBytes = TW_VECTOR_BYTES;

/// Vector of `bytes` bytes.
template <class T, size_t bytes>
struct VectorOf {
  using Type __attribute__((vector_size(bytes))) = T;
};

/// N elements of type T: one vector, or several where those of the set are shorter.
template <class T, size_t N>
struct Lanes {
  static constexpr size_t kBytes = N * sizeof(T) < kVectorBytes ? N * sizeof(T) : kVectorBytes;
  static constexpr size_t kWidth = kBytes / sizeof(T), kParts = N / kWidth;
  using Vector = typename VectorOf<T, kBytes>::Type;

  Vector part[kParts];  ///< not initialised, as a float is not

  TW_INLINE static void load(const T* from, Vector& to) { std::memcpy(&to, from, kBytes); }
  TW_INLINE static void load(const bf16* from, Vector& to) {
    using Words = typename VectorOf<uint32_t, kBytes>::Type;
    using Halves = typename VectorOf<uint16_t, kBytes / 2>::Type;
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    to = reinterpret_cast<Vector>(__builtin_convertvector(halves, Words) << 16);
  }
  TW_INLINE static void store(const Vector& from, T* to) { std::memcpy(to, &from, kBytes); }
  /// Rounds to nearest even as ops::store does.
  TW_INLINE static void store(const Vector& from, bf16* to) {
    using Words = typename VectorOf<uint32_t, kBytes>::Type;
    using Halves = typename VectorOf<uint16_t, kBytes / 2>::Type;
    const Words bits = reinterpret_cast<Words>(from);
    const Words carry = (0x7fffu + ((bits >> 16) & 1u)) & reinterpret_cast<Words>(from == from);
    const Halves halves = __builtin_convertvector((bits + carry) >> 16, Halves);
    std::memcpy(static_cast<void*>(to), &halves, sizeof halves);
  }

  TW_INLINE static Lanes load(const T* from) {
    Lanes lanes;
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) load(from + p * kWidth, lanes.part[p]);
    return lanes;
  }
  TW_INLINE void store(T* to) const {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) store(part[p], to + p * kWidth);
  }

  TW_INLINE Lanes& operator+=(const Lanes& other) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) part[p] += other.part[p];
    return *this;
  }
  /// Adds a * b.
  TW_INLINE void add_product(const Lanes& a, const Lanes& b) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) part[p] += a.part[p] * b.part[p];
  }
  /// Takes the other's elements where those are larger.
  TW_INLINE void raise(const Lanes& other) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) part[p] = larger(other.part[p], part[p]);
  }
  /// a > b ? a : b
  TW_INLINE static Vector larger(const Vector& a, const Vector& b) {
#if TW_VECTOR_BYTES >= 32  // GCC 12 compares and blends
    if constexpr (std::is_same_v<T, float> && kBytes == 32) return _mm256_max_ps(a, b);
#endif
    return a > b ? a : b;
  }
  /// Without the signs.
  TW_INLINE Lanes magnitude() const {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    using Words = typename VectorOf<Word, kBytes>::Type;
    Lanes lanes;
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p)
      lanes.part[p] = reinterpret_cast<Vector>(reinterpret_cast<Words>(part[p]) & (~Word{} >> 1));
    return lanes;
  }
  /// Adds factor * other.
  TW_INLINE void add(T factor, const Lanes& other) {
#pragma GCC unroll 4
    for (size_t p = 0; p < kParts; ++p) part[p] += factor * other.part[p];
  }
  TW_INLINE T operator[](size_t i) const { return part[i / kWidth][i % kWidth]; }
};

/// N floats as double. GCC 12 converts vectors one element after the other, hence the intrinsics.
template <size_t N>
TW_INLINE Lanes<double, N> widened(const float* from) {
  using Wide = Lanes<double, N>;
  Wide wide;
#pragma GCC unroll 4
  for (size_t p = 0; p < Wide::kParts; ++p) {
    const float* const x = from + p * Wide::kWidth;
#if TW_VECTOR_BYTES == 64
    wide.part[p] = _mm512_maskz_cvtps_pd(0xff, _mm256_loadu_ps(x));
#elif TW_VECTOR_BYTES == 32
    wide.part[p] = _mm256_cvtps_pd(_mm_loadu_ps(x));
#else
    for (size_t i = 0; i < Wide::kWidth; ++i) wide.part[p][i] = x[i];
#endif
  }
  return wide;
}

}  // namespace tw::TW_CPU
