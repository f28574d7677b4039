// The emulator detects errors of CUDA code.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <vector>

namespace {

constexpr int kThreads = 256;

__global__ void reverse(const int* x, int* y, bool wait) {
  __shared__ int shared[kThreads];
  shared[threadIdx.x] = x[threadIdx.x];
  if (wait) __syncthreads();
  y[threadIdx.x] = shared[kThreads - 1 - threadIdx.x];
}

__global__ void half_a_warp_votes(unsigned* votes) {
  if (threadIdx.x % 32 < 16) votes[threadIdx.x] = __ballot_sync(~0u, 1);
}

__global__ void sum_of_lanes(unsigned* sums) {
  sums[threadIdx.x] = __reduce_add_sync(~0u, threadIdx.x) + __shfl_xor_sync(~0u, threadIdx.x, 1);
}

__global__ void write(int* x) { *x = 1; }

/// Each block adds one and waits for all blocks.
__global__ void meet(int* arrived, int* seen) {
  atomicAdd(arrived, 1);
  const volatile int* const now = arrived;
  while (*now < static_cast<int>(gridDim.x)) __nanosleep(10);
  seen[blockIdx.x] = *now;
}

cudaError_t run_meeting(unsigned blocks, bool together, int* arrived, int* seen) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.val.cooperative = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = 1;
  config.attrs = &cooperative;
  config.numAttrs = together;
  return cudaLaunchKernelEx(&config, meet, arrived, seen);
}

template <class... Parameters, class... Arguments>
cudaError_t run(void (*kernel)(Parameters...), unsigned threads, Arguments... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = 1;
  config.blockDim = threads;
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

/// Device memory.
template <class T>
struct Values {
  explicit Values(size_t n) : count(n) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data), n * sizeof(T)), cudaSuccess);
  }
  ~Values() { cudaFree(data); }
  std::vector<T> get() const {
    std::vector<T> host(count);
    EXPECT_EQ(cudaMemcpy(host.data(), data, count * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return host;
  }
  void set(const std::vector<T>& host) {
    EXPECT_EQ(cudaMemcpy(data, host.data(), count * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  size_t count;
  T* data = nullptr;
};

bool reverses(int first, bool wait) {
  Values<int> x(kThreads), y(kThreads);
  std::vector<int> numbers(kThreads);
  std::iota(numbers.begin(), numbers.end(), first);
  x.set(numbers);
  EXPECT_EQ(run(reverse, kThreads, x.data, y.data, wait), cudaSuccess);
  std::ranges::reverse(numbers);
  return y.get() == numbers;
}

TEST(Emulator, BarriersSynchroniseTheThreadsOfABlock) { EXPECT_TRUE(reverses(100, true)); }

TEST(Emulator, AMissingBarrierGivesWrongResults) { EXPECT_FALSE(reverses(200, false)); }

TEST(Emulator, LanesOfAWarpExchange) {
  Values<unsigned> sums(64);
  ASSERT_EQ(run(sum_of_lanes, 64, sums.data), cudaSuccess);
  const std::vector<unsigned> found = sums.get();
  for (unsigned t = 0; t < 64; ++t) EXPECT_EQ(found[t], (t < 32 ? 496 : 1520) + (t ^ 1));
}

TEST(EmulatorDeathTest, ADeadlockInAWarpAborts) {
  Values<unsigned> votes(32);
  EXPECT_DEATH(
      {
        run(half_a_warp_votes, 32, votes.data);
        cudaDeviceSynchronize();
      },
      "are deadlocked");
}

TEST(EmulatorDeathTest, HostAccessToDeviceMemoryAborts) {
  Values<int> x(1);
  EXPECT_DEATH(*x.data = 1, "host code accesses device memory");
}

TEST(EmulatorDeathTest, AWritePastAnAllocationAborts) {
  EXPECT_DEATH(
      {
        const Values<int> x(4);
        run(write, 1, x.data + 4);
      },
      "a write past the end of an allocation of 16 bytes");
}

TEST(Emulator, BlocksOfACooperativeLaunchRunTogether) {
  int processors = 0, blocks = 0;
  cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, reinterpret_cast<const void*>(meet), 1, 0);
  const int held = processors * blocks;
  Values<int> arrived(1), seen(static_cast<size_t>(held));
  arrived.set({0});
  ASSERT_EQ(run_meeting(static_cast<unsigned>(held), true, arrived.data, seen.data), cudaSuccess);
  EXPECT_EQ(seen.get(), std::vector<int>(static_cast<size_t>(held), held));
  EXPECT_EQ(run_meeting(static_cast<unsigned>(held) + 1, true, arrived.data, seen.data),
            cudaErrorCooperativeLaunchTooLarge);
}

TEST(EmulatorDeathTest, ABlockThatWaitsForOthersAbortsInOtherLaunches) {
  Values<int> arrived(1), seen(2);
  arrived.set({0});
  EXPECT_DEATH(
      {
        run_meeting(2, false, arrived.data, seen.data);
        cudaDeviceSynchronize();
      },
      "a block waits for another");
}

TEST(Emulator, CopiesBeyondAnAllocationFail) {
  Values<int> x(4);
  const std::vector<int> host(5);
  EXPECT_EQ(cudaMemcpy(x.data, host.data(), 20, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_EQ(cudaMemcpy(x.data, host.data(), 16, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST(Emulator, QueuedWorkMayRunAtTheNextSynchronisation) {
  cudaStream_t stream = nullptr;
  int* pinned = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(int), 0), cudaSuccess);
  Values<int> x(1);
  int late = 0;
  for (int i = 0; i < 64; ++i) {
    x.set({i});
    *pinned = -1;
    ASSERT_EQ(cudaMemcpyAsync(pinned, x.data, sizeof(int), cudaMemcpyDefault, stream), cudaSuccess);
    late += *pinned == -1;
    ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
    EXPECT_EQ(*pinned, i);
  }
  EXPECT_GT(late, 32);
  EXPECT_LT(late, 64);  // some run at once
  cudaFreeHost(pinned);
  cudaStreamDestroy(stream);
}

TEST(Emulator, ACaptureRunsWhenItsGraphIsLaunched) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Values<int> x(1);
  x.set({7});
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(x.data, 0, sizeof(int), stream), cudaSuccess);
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t ready = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&ready, graph, 0), cudaSuccess);
  EXPECT_EQ(x.get()[0], 7);
  ASSERT_EQ(cudaGraphLaunch(ready, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream), cudaSuccess);
  EXPECT_EQ(x.get()[0], 0);
  cudaGraphExecDestroy(ready);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
}

TEST(Emulator, CallsThatACaptureForbidsInvalidateIt) {
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const Values<int> x(1);
  void* memory = nullptr;
  int host = 0;
  for (const std::function<cudaError_t()>& call :
       std::initializer_list<std::function<cudaError_t()>>{
           [&] { return cudaMalloc(&memory, 4); }, [&] { return cudaFree(x.data); },
           [&] { return cudaStreamSynchronize(stream); },
           [&] { return cudaMemcpyAsync(x.data, &host, 4, cudaMemcpyDefault, stream); }}) {
    ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), cudaSuccess);
    EXPECT_EQ(call(), cudaErrorStreamCaptureUnsupported);
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
    EXPECT_EQ(graph, nullptr);
  }
  cudaStreamDestroy(stream);
}

TEST(Emulator, EventsOrderStreams) {
  cudaStream_t first = nullptr, second = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking), cudaSuccess);
  cudaEvent_t written = nullptr;
  ASSERT_EQ(cudaEventCreateWithFlags(&written, cudaEventDisableTiming), cudaSuccess);
  int* pinned = nullptr;
  ASSERT_EQ(cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(int), 0), cudaSuccess);
  Values<int> x(1);
  for (const bool waits : {false, true}) {
    int wrong = 0;
    for (int i = 0; i < 64; ++i) {
      x.set({1});
      cudaMemsetAsync(x.data, 0, sizeof(int), first);
      cudaEventRecord(written, first);
      if (waits) cudaStreamWaitEvent(second, written, 0);
      cudaMemcpyAsync(pinned, x.data, sizeof(int), cudaMemcpyDefault, second);
      cudaStreamSynchronize(second);
      wrong += *pinned != 0;
      cudaStreamSynchronize(first);
    }
    EXPECT_EQ(wrong > 0, !waits) << wrong;
  }
  cudaFreeHost(pinned);
  cudaEventDestroy(written);
  cudaStreamDestroy(second);
  cudaStreamDestroy(first);
}

TEST(Emulator, KernelsRejectHostPointers) {
  int host = 0;
  EXPECT_EQ(run(write, 1, &host), cudaErrorIllegalAddress);
  EXPECT_EQ(cudaGetLastError(), cudaErrorIllegalAddress);
}

}  // namespace
