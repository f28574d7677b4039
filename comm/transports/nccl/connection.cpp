#include "comm/transports/nccl/connection.h"

#include <algorithm>
#include <string>
#include <utility>

#include "comm/transports/deadline.h"
#include "comm/transports/poll.h"

namespace tw::nccl {
namespace {

using namespace std::chrono_literals;

constexpr int kTestsAtFirst = 2000;  // one or two milliseconds
constexpr int kTestsAfterNap = 2;
constexpr int kTestsPerLook = 32;  // tests between two calls of check_peers()
constexpr auto kAbortLimit = 2s, kGoodbyeLimit = 10s;

/// Makes `gpu` the current GPU of this thread.
int make_current(int gpu) {
  cuda::expect(cudaSetDevice(gpu), "device");
  return gpu;
}

bool good(ncclResult_t result) { return result == ncclSuccess || result == ncclInProgress; }

}  // namespace

NcclConnection::NcclConnection(const Communicator& owner, int gpu, const ncclUniqueId& id)
    : owner_(owner), gpu_(make_current(gpu)), exceptions_(std::uncaught_exceptions()) {
  int least = 0, greatest = 0;  // of priorities; the greatest is the smallest number
  cuda::expect(cudaDeviceGetStreamPriorityRange(&least, &greatest), "stream");
  // messages do not queue behind kernels that wait for free multiprocessors
  cuda::expect(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, greatest), "stream");
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  expect(ncclCommInitRankConfig(&comm_, owner_.size(), id, owner_.rank(), &config), "start");
  wait_for(-1, [this] { return settled(); });
}

NcclConnection::~NcclConnection() {
  cudaSetDevice(gpu_);
  if (std::uncaught_exceptions() > exceptions_)
    abort();
  else
    finalize();
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void NcclConnection::begin(const Context& ctx) {
  tw::check<Fault>(comm_ != nullptr, "[nccl] rank {}: its connections were aborted", owner_.rank());
  make_current(gpu_);
  if (ctx.device() == Device::cpu) return;
  ready_.record(cuda::stream(ctx));
  ready_.make_wait(stream_);
}

void NcclConnection::queue(int peer, const Calls& body) {
  expect(ncclGroupStart(), "group");
  const ncclResult_t called = body(comm_, stream_);
  const ncclResult_t ended = ncclGroupEnd();  // also after a failed call, to leave the group
  expect(called, "call");
  expect(ended, "group");
  wait_for(peer, [this] { return settled(); });
}

void NcclConnection::record(int slot) { recorded_[slot].record(stream_); }

void NcclConnection::wait(int slot, int peer) {
  wait_for(peer, [&] {
    if (recorded_[slot].done()) return true;
    settled();  // throws when the connection has failed
    return false;
  });
}

template <class Done>
void NcclConnection::wait_for(int peer, const Done& done) {
  try {
    int tests = 0;
    const auto test = [&] {
      if (done()) return true;
      if (++tests % kTestsPerLook == 0) owner_.check_peers();
      return false;
    };
    WaitLimit limit = owner_.wait_limit();
    if (!poll_until(limit, kTestsAtFirst, kTestsAfterNap, test)) owner_.throw_timeout(peer);
  } catch (...) {
    abort();
    throw;
  }
}

/// Whether all calls so far are queued on the stream. Fault when one of them or the connection
/// failed.
bool NcclConnection::settled() {
  ncclResult_t state = ncclSuccess;
  expect(ncclCommGetAsyncError(comm_, &state), "state");
  expect(state, "exchange");
  return state == ncclSuccess;
}

void NcclConnection::expect(ncclResult_t result, const char* what) {
  if (good(result)) [[likely]]
    return;
  std::string details = ncclGetLastError(comm_);
  std::ranges::replace(details, '\n', ' ');
  abort();
  fail<Fault>("[nccl] rank {}: {}: {} {}", owner_.rank(), what, ncclGetErrorString(result),
              details);
}

void NcclConnection::abort() {
  if (comm_ == nullptr) return;
  // stops the kernels and frees what NCCL holds; the library may wait for ranks that are gone
  run_with_deadline(kAbortLimit, [comm = std::exchange(comm_, nullptr)] { ncclCommAbort(comm); });
}

void NcclConnection::finalize() {
  if (comm_ == nullptr) return;
  ncclResult_t state = ncclCommFinalize(comm_);
  const auto quiet = [&] {
    return ncclCommGetAsyncError(comm_, &state) != ncclSuccess || state != ncclInProgress;
  };
  WaitLimit limit(kGoodbyeLimit);
  const bool in_time = poll_until(limit, kTestsAtFirst, kTestsAfterNap, quiet);
  if (in_time && state == ncclSuccess)
    ncclCommDestroy(std::exchange(comm_, nullptr));
  else
    abort();
}

}  // namespace tw::nccl
