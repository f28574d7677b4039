// The vector operations around selection: a GPU compared with the CPU.
#include <gtest/gtest.h>

#include "engine/core/copy.h"
#include "sparsify/kernels/magnitude.h"
#include "sparsify/kernels/moments.h"
#include "sparsify/kernels/sparse_ops.h"
#include "sparsify/momentum_correction.h"
#include "tests/support/owned_tensor.h"
#include "tests/support/ranks/sgd_rig.h"
#include "tests/support/selection.h"

namespace tw {
namespace {

using test::OwnedTensor;

struct Vectors {
  explicit Vectors(size_t n)
      : cpu_a(n), cpu_b(n), gpu_a({int64_t(n)}, DType::f32), gpu_b({int64_t(n)}, DType::f32) {
    Context host;
    fill_random(host, distributions().at("t3"), 1, cpu_a);
    fill_random(host, distributions().at("laplace"), 2, cpu_b);
    copy_to_device(gpu, cpu_a, gpu_a.floats());
    copy_to_device(gpu, cpu_b, gpu_b.floats());
  }
  std::vector<float> fetched(const OwnedTensor& x) {
    std::vector<float> host(cpu_a.size());
    copy_to_host(gpu, x.floats(), host);
    return host;
  }

  Context cpu, gpu{test::device()};
  std::vector<float> cpu_a, cpu_b;
  OwnedTensor gpu_a, gpu_b;
};

constexpr size_t kLengths[] = {1, 7, 8, 9, 4095, 4096, 4097, 100'003, size_t{1} << 20};

TEST(VectorOpsOnGpu, MeasureHasTheBitsOfTheCpu) {
  for (const size_t n : kLengths)
    for (const bool add : {false, true}) {
      Vectors v(n);
      std::vector<Moments> blocks;
      const auto g = [&](std::span<const float> x) { return add ? x : std::span<const float>(); };
      const Moments a = add_and_moments(v.cpu, g(v.cpu_a), v.cpu_b, blocks);
      const Moments b = add_and_moments(v.gpu, g(v.gpu_a.floats()), v.gpu_b.floats(), blocks);
      EXPECT_EQ(a.sum, b.sum) << n;
      EXPECT_EQ(a.square, b.square) << n;
      EXPECT_EQ(a.magnitude, b.magnitude) << n;
      EXPECT_EQ(a.largest, b.largest) << n;
      EXPECT_TRUE(same_bits(v.fetched(v.gpu_b), v.cpu_b)) << n;
    }
}

TEST(VectorOpsOnGpu, TailHasTheBitsOfTheCpu) {
  for (const size_t n : kLengths)
    for (const float threshold : {1e-3f, 1.0f, 1e9f}) {
      Vectors v(n);
      std::vector<Tail> blocks;
      const uint32_t bits = magnitude_bits(threshold);
      const Tail a = tail_of(v.cpu, v.cpu_a, bits, blocks);
      const Tail b = tail_of(v.gpu, v.gpu_a.floats(), bits, blocks);
      EXPECT_EQ(a.sum, b.sum) << n;
      EXPECT_EQ(a.least, b.least) << n;
      EXPECT_EQ(a.count, b.count) << n;
    }
}

TEST(VectorOpsOnGpu, MomentumCorrectionHasTheBitsOfTheCpu) {
  for (const size_t n : kLengths)
    for (const bool nesterov : {false, true}) {
      Vectors v(n);
      const MomentumSlice on_cpu{v.cpu_a, v.cpu_b}, on_gpu{v.gpu_a.floats(), v.gpu_b.floats()};
      correct_momentum(v.cpu, 0.9f, nesterov, {&on_cpu, 1});
      correct_momentum(v.gpu, 0.9f, nesterov, {&on_gpu, 1});
      const auto a = v.fetched(v.gpu_a), b = v.fetched(v.gpu_b);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_NEAR(a[i], v.cpu_a[i], 1e-6 * (1 + std::abs(v.cpu_a[i])));
        EXPECT_NEAR(b[i], v.cpu_b[i], 1e-6 * (1 + std::abs(v.cpu_b[i])));
      }
    }
}

TEST(VectorOpsOnGpu, ClippingHasTheBitsOfTheCpu) {
  for (const size_t n : kLengths)
    for (const double limit : {0.5, 1e9}) {
      Vectors v(n);
      std::vector<Moments> blocks;
      clip_norm(v.cpu, limit, v.cpu_a, blocks);
      clip_norm(v.gpu, limit, v.gpu_a.floats(), blocks);
      EXPECT_EQ(v.fetched(v.gpu_a), v.cpu_a);
    }
}

TEST(VectorOpsOnGpu, SparseOpsHaveTheBitsOfTheCpu) {
  for (const size_t n : kLengths) {
    Vectors v(n);
    std::vector<SparseVector> entries(5);
    std::vector<SparseView> parts;
    for (size_t p = 0; p < entries.size(); ++p) {
      entries[p].reserve(n);
      for (uint32_t i = static_cast<uint32_t>(p); i < n; i += static_cast<uint32_t>(2 * p + 1))
        entries[p].push(i, v.cpu_a[n - 1 - i]);
      parts.push_back(entries[p].view());
    }
    scatter_add(v.cpu, parts[2], v.cpu_b);
    scatter_add(v.gpu, parts[2], v.gpu_b.floats());
    for (size_t i = 3; i < n; i += 14) v.cpu_a[i] = 0;  // half of them are 0 in the sum
    copy_to_device(v.gpu, v.cpu_a, v.gpu_a.floats());
    zero_where_sent(v.cpu, parts[3].indices, v.cpu_a, v.cpu_b);
    zero_where_sent(v.gpu, parts[3].indices, v.gpu_a.floats(), v.gpu_b.floats());
    EXPECT_TRUE(same_bits(v.fetched(v.gpu_b), v.cpu_b)) << n;
    sparse_sum(v.cpu, parts, v.cpu_a);
    sparse_sum(v.gpu, parts, v.gpu_a.floats());
    EXPECT_TRUE(same_bits(v.fetched(v.gpu_a), v.cpu_a)) << n;
  }
}

}  // namespace
}  // namespace tw
