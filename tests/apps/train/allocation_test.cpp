// In the steady state a training step does not allocate: our code makes no allocation, libraries
// make none of 4 KiB or more. Without AVX-512, oneDNN's matrix products allocate the memory for
// their packed operands in each call; what oneDNN gets by posix_memalign is not counted then.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <new>

#include "apps/train/tables/records.h"
#include "comm/collectives/collectives.h"
#include "comm/transports.h"
#include "data/loader.h"
#include "engine/core/cpu_features.h"
#include "models/model.h"
#include "sparsify/kernels/candidates.h"
#include "sparsify/optimizer.h"
#include "tests/support/ranks/sgd_rig.h"

namespace {

std::atomic<bool> watching = false;
std::atomic<int> ours = 0, large = 0;
constexpr size_t kLarge = 4096;
std::atomic<const void*> culprit = nullptr;  // the last caller that allocated, for the message

/// True when the code at `address` belongs to a library of that name.
bool in_library(const void* address, const char* library) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname && std::strstr(info.dli_fname, library);
}

/// File and offset of an address, in the form that addr2line takes.
std::string place(const void* address) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return "unknown";
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  return fmt::format("{} {:#x}", info.dli_fname, offset);
}

// sanitizers have an allocator of their own, which is not replaced
[[maybe_unused]] void note_large(size_t size, const void* caller) {
  if (!watching || size < kLarge) return;
  ++large;
  culprit = caller;
}

[[maybe_unused]] void* counted_new(size_t size, const void* caller) {
  if (watching && !in_library(caller, "libdnnl") && !in_library(caller, "libgomp")) {
    ++ours;
    culprit = caller;
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

#ifdef TW_SANITIZED
constexpr bool kCounts = false;
#else
constexpr bool kCounts = true;
void* operator new(size_t size) { return counted_new(size, __builtin_return_address(0)); }
void* operator new[](size_t size) { return counted_new(size, __builtin_return_address(0)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

// the allocation functions of glibc, which the counting ones below call
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t alignment, size_t size);
void* __libc_calloc(size_t count, size_t size);
void* __libc_realloc(void* memory, size_t size);

void* malloc(size_t size) {
  note_large(size, __builtin_return_address(0));
  return __libc_malloc(size);
}
void* calloc(size_t count, size_t size) {
  note_large(count * size, __builtin_return_address(0));
  return __libc_calloc(count, size);
}
void* realloc(void* memory, size_t size) {
  note_large(size, __builtin_return_address(0));
  return __libc_realloc(memory, size);
}
void* memalign(size_t alignment, size_t size) {
  note_large(size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  note_large(size, __builtin_return_address(0));
  return __libc_memalign(alignment, size);
}
void* mmap(void* at, size_t size, int protection, int flags, int file, off_t offset) {
  note_large(size, __builtin_return_address(0));
  return reinterpret_cast<void*>(syscall(SYS_mmap, at, size, protection, flags, file, offset));
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  const void* const caller = __builtin_return_address(0);
  if (tw::cpu_has_avx512() || !in_library(caller, "libdnnl")) note_large(size, caller);
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace tw {
namespace {

class Noise : public Dataset {
 public:
  size_t size() const override { return 4096; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    for (size_t p = 0; p < pixels.size(); ++p) pixels[p] = static_cast<uint8_t>(i * 31 + p * 7);
    return static_cast<int32_t>(i % 10);
  }
};

/// Everything train() does in a step.
void steps(Communicator& comm, const Variant& variant, DType precision, int threads,
           int64_t local_steps) {
  Context ctx(Device::cpu, threads);
  // A setting of a sparsifier does not depend on the layers; mlp has the longer vector, for which
  // the selectors keep less memory in reserve than its length.
  Model model(variant.name == variant.sparsifier ? "resnet20" : "mlp", {});
  model.plan(ctx, {.batch = 2, .activations = precision});
  model.allocate(ctx, 1);
  const auto sgd = make_optimizer(ctx, comm, model.arena(),
                                  {.sparsifier = variant.sparsifier, .local_steps = local_steps},
                                  variant.settings);
  Loader loader(std::make_shared<Noise>(),
                {.batch = 2, .rank = comm.rank(), .ranks = comm.size(), .threads = 1});
  model.refresh(ctx);
  loader.start(0);
  constexpr int kWarm = 20, kWatched = 10;
  for (int step = 0; step < kWarm + kWatched; ++step) {
    barrier(ctx, comm);
    if (comm.rank() == 0) watching = step >= kWarm;
    barrier(ctx, comm);
    const Batch& batch = loader.next();
    std::memcpy(model.images().data, batch.images.data, batch.images.bytes());
    std::memcpy(model.labels().data, batch.labels.data, batch.labels.bytes());
    const PassArgs pass{.ctx = ctx, .step = static_cast<uint64_t>(step)};
    model.forward(pass);
    model.backward(pass);
    // a small rate, with which no variant diverges: growing sums need growing buffers
    sgd->step({.step = pass.step, .lr = 0.0001, .density = 0.01});
    model.refresh(ctx);
  }
  barrier(ctx, comm);
  watching = false;
  barrier(ctx, comm);
}

struct Case {
  Variant variant;
  DType precision;
  int threads;
  int64_t local_steps = 0;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.variant.name << ", " << name(c.precision) << ", " << c.threads << " threads";
}

class Allocation : public testing::TestWithParam<Case> {};

TEST_P(Allocation, SteadyStateStepAllocatesNothing) {
  if (!kCounts) GTEST_SKIP() << "the sanitizer replaces the allocator";
  const auto& [variant, precision, threads, local_steps] = GetParam();
  ours = large = 0;
  // two ranks, or two threads of one rank, since the machine may have only two cores
  run_on_threads(threads == 1 ? 2 : 1, [&](Communicator& comm) {
    steps(comm, variant, precision, threads, local_steps);
  });
  EXPECT_EQ(ours, 0) << "last from " << place(culprit);
  EXPECT_EQ(large, 0) << "last from " << place(culprit);
}

TEST(Selection, AllocatesNothingWithAMisleadingSample) {
  if (!kCounts) GTEST_SKIP() << "the sanitizer replaces the allocator";
  Context ctx(Device::cpu, 2);
  std::vector<float> g(100'003), e(g.size());
  for (size_t i = 0; i < g.size(); ++i) g[i] = static_cast<float>(i % 1009);
  for (size_t i = 0; i < kSamples; ++i) g[sample_position(i, g.size())] = 1e6f;
  const auto selector = selectors().find("topk").value(ctx, default_settings(), {});
  SparseVector out;
  for (int step = 0; step < 3; ++step) {
    out.count = 0;
    std::ranges::fill(e, 0.0f);
    ours = large = 0;
    watching = step == 2;
    selector->select(ctx, {.g = g, .e = e, .k = 20'000}, out);
    watching = false;
  }
  EXPECT_EQ(out.count, 20'000u);
  EXPECT_EQ(ours + large, 0) << "last from " << place(culprit);
}

TEST(AllocationCounter, CountsEveryKindOfAllocation) {
  if (!kCounts) GTEST_SKIP() << "the sanitizer replaces the allocator";
  ours = large = 0;
  watching = true;
  std::vector<char> block(kLarge);
  testing::Message() << block.data();
  watching = false;
  EXPECT_GE(ours, 1);
  EXPECT_GE(large, 1);

  const auto counted = [](void* (*allocate)()) {
    large = 0;
    watching = true;
    void* volatile memory = allocate();
    watching = false;
    EXPECT_EQ(large, 1);
    return memory;
  };
  std::free(counted([] { return std::calloc(2, kLarge / 2); }));
  std::free(counted([] { return std::realloc(std::malloc(1), kLarge); }));
  std::free(counted([] { return memalign(64, kLarge); }));
  std::free(counted([] { return std::aligned_alloc(64, kLarge); }));
  munmap(counted([] { return mmap(nullptr, kLarge, 0, MAP_PRIVATE | MAP_ANON, -1, 0); }), kLarge);
}

/// False if k does not limit the number of entries: buffers grow whenever a step sends more entries
/// than any step before.
bool sends_at_most_k(const Variant& variant) {
  const std::string selector = selector_of(variant);
  if (selector.empty()) return true;
  const Volume volume = selectors().find(selector).value.volume(variant.settings);
  return volume == Volume::exactly_k || volume == Volume::at_most_k;
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Variant& variant : variants())
    if (sends_at_most_k(variant))
      for (int threads : {1, 2})
        for (DType precision : {DType::f32, DType::bf16})
          // sparsifiers work on f32: their settings do not depend on the precision
          if (precision == DType::f32 || variant.name == variant.sparsifier)
            all.push_back({variant, precision, threads});
  for (const char* name : {"dense", "topk"})
    all.push_back({{.sparsifier = name}, DType::f32, 1, 3});
  return all;
}

INSTANTIATE_TEST_SUITE_P(Steps, Allocation, testing::ValuesIn(cases()), [](const auto& c) {
  std::string text =
      fmt::format("{}_{}_{}", c.param.variant.name, name(c.param.precision), c.param.threads);
  if (c.param.local_steps > 0) text += fmt::format("_local_{}", c.param.local_steps);
  std::ranges::replace_if(
      text, [](char x) { return !std::isalnum(x); }, '_');
  return text;
});

}  // namespace
}  // namespace tw
