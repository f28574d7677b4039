// A steady training step allocates nothing: not our code at all, nobody 4 KiB or more at once.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "apps/support/step_log.h"
#include "comm/collectives.h"
#include "comm/transports.h"
#include "data/loader.h"
#include "engine/cpu_features.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace {

std::atomic<bool> watching = false;
std::atomic<int> ours = 0, large = 0;
constexpr size_t kLarge = 4096;
std::atomic<const void*> culprit = nullptr;  // the last caller of ours, for the message

/// True when code at `address` belongs to a library below us, oneDNN or OpenMP.
bool in_library(const void* address) {
  Dl_info info{};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return false;
  return std::strstr(info.dli_fname, "libdnnl") || std::strstr(info.dli_fname, "libgomp");
}

/// File and offset of an address, as addr2line wants them.
std::string place(const void* address) {
  Dl_info info{};
  if (address == nullptr || dladdr(address, &info) == 0) return "unknown";
  const auto offset = static_cast<const char*>(address) - static_cast<const char*>(info.dli_fbase);
  return fmt::format("{} {:#x}", info.dli_fname, offset);
}

void* counted_new(size_t size, const void* caller) {
  if (watching && !in_library(caller)) {
    ++ours;
    culprit = caller;
  }
  void* memory = std::malloc(size == 0 ? 1 : size);
  if (!memory) throw std::bad_alloc();
  return memory;
}

}  // namespace

#ifndef TW_SANITIZED
void* operator new(size_t size) { return counted_new(size, __builtin_return_address(0)); }
void* operator new[](size_t size) { return counted_new(size, __builtin_return_address(0)); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }

// glibc's own entries, so that the counted ones can stand in front of them
extern "C" {
void* __libc_malloc(size_t size);
void* __libc_memalign(size_t alignment, size_t size);

void* malloc(size_t size) {
  if (watching && size >= kLarge) ++large;
  return __libc_malloc(size);
}
void* aligned_alloc(size_t alignment, size_t size) {
  if (watching && size >= kLarge) ++large;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  if (watching && size >= kLarge) ++large;
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
void steps(Communicator& comm, const std::string& sparsifier, DType precision) {
  Context ctx(Device::cpu, 1);
  Model model("resnet20", {});
  model.plan(ctx, {.batch = 8, .activations = precision});
  model.allocate(ctx, 1);
  SyncSgd sgd(ctx, comm, model.arena(), {.sparsifier = sparsifier}, default_settings());
  Loader loader(std::make_shared<Noise>(),
                {.batch = 8, .rank = comm.rank(), .ranks = comm.size(), .threads = 1});
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
    const Pass pass{.ctx = ctx, .step = static_cast<uint64_t>(step)};
    model.forward(pass);
    model.backward(pass);
    sgd.step({.step = pass.step, .lr = 0.01, .density = 0.01});
    model.refresh(ctx);
  }
  barrier(ctx, comm);
  watching = false;
  barrier(ctx, comm);
}

struct Case {
  const char* sparsifier;
  DType precision;
};

class Allocation : public testing::TestWithParam<Case> {};

TEST_P(Allocation, NothingInASteadyStep) {
#ifdef TW_SANITIZED
  GTEST_SKIP() << "the sanitizer replaces the allocator";
#endif
  if (GetParam().precision == DType::bf16 && !cpu_has_bf16()) GTEST_SKIP() << "no bf16 here";
  ours = large = 0;
  run_on_threads(
      2, [&](Communicator& comm) { steps(comm, GetParam().sparsifier, GetParam().precision); });
  EXPECT_EQ(ours, 0) << "last from " << place(culprit);
  EXPECT_EQ(large, 0);
}

TEST(AllocationCounter, Counts) {
#ifdef TW_SANITIZED
  GTEST_SKIP() << "the sanitizer replaces the allocator";
#endif
  ours = large = 0;
  watching = true;
  std::vector<char> block(kLarge);
  testing::Message() << block.data();
  watching = false;
  EXPECT_GE(ours, 1);
  EXPECT_GE(large, 1);
}

INSTANTIATE_TEST_SUITE_P(Steps, Allocation,
                         testing::Values(Case{"dense", DType::f32}, Case{"topk", DType::f32},
                                         Case{"gaussiank", DType::f32}, Case{"dense", DType::bf16},
                                         Case{"gaussiank", DType::bf16}),
                         [](const auto& c) {
                           return std::string(c.param.sparsifier) + "_" +
                                  std::string(name(c.param.precision));
                         });

}  // namespace
}  // namespace tw
