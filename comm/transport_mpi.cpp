// MPI transport: ranks are the processes of mpirun.
//
// MPICH waits by polling without ever giving up the core, which costs milliseconds a message when
// ranks outnumber cores. So nothing here blocks inside MPI: calls are started, tested a few times,
// and tested again after short naps.

#include <mpi.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <iostream>
#include <mutex>
#include <thread>

#include "comm/transports.h"

namespace tw {
namespace {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

constexpr int kDataTag = 1, kFinishTag = 2;
constexpr int kTestsBeforeNap = 100;
constexpr auto kNap = 20us;
constexpr auto kGrace = 1s;             // for other ranks to come to the end after an error
constexpr auto kFinalizeLimit = 500ms;  // for MPI_Finalize, which takes 10 ms where it works

std::string error_text(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return text.data();
}

void check_mpi(int code, const char* call) {
  check<Fault>(code == MPI_SUCCESS, "[mpi] {} failed: {}", call, error_text(code));
}

void nap() {
  // the kernel rounds sleeps up by 50 us unless told that this thread wants them exact
  thread_local const int exact = prctl(PR_SET_TIMERSLACK, 1);
  (void)exact;
  std::this_thread::sleep_for(kNap);
}

/// A send and a receive in flight; unused ones are MPI_REQUEST_NULL.
struct InFlight {
  std::array<MPI_Request, 2> requests{MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  std::array<MPI_Status, 2> statuses{};

  MPI_Request* receive() { return &requests[0]; }
  MPI_Request* send() { return &requests[1]; }

  /// Waits for both without holding the core; false when `deadline` comes first.
  bool wait(Clock::time_point deadline = Clock::time_point::max()) {
    for (;;) {
      for (int test = 0; test < kTestsBeforeNap; ++test) {
        int done = 0;
        const int code = MPI_Testall(2, requests.data(), &done, statuses.data());
        if (code == MPI_ERR_IN_STATUS)
          for (const MPI_Status& status : statuses)
            if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, "a message");
        check_mpi(code, "MPI_Testall");
        if (done) return true;
      }
      if (Clock::now() > deadline) return false;
      nap();
    }
  }
  int received_bytes() {
    int bytes = 0;
    MPI_Get_count(&statuses[0], MPI_BYTE, &bytes);
    return bytes;
  }
};

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(size_t block_bytes) : block_(block_bytes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* transport() const override { return "mpi"; }

  void abort(const char* reason) override {
    fmt::print(stderr, "[mpi] rank {} gives up: {}\n", rank_, reason);
    std::fflush(nullptr);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }

 protected:
  size_t do_exchange(Context&, int to, ConstBytes out, int from, Bytes in) override {
    // the first block that is not full is the last
    bool sending = to >= 0, receiving = from >= 0;
    size_t received = 0;
    while (sending || receiving) {
      InFlight flight;
      const ConstBytes block = out.first(std::min(block_, out.size()));
      if (receiving)
        check_mpi(MPI_Irecv(in.data() + received,
                            static_cast<int>(std::min(block_, in.size() - received)), MPI_BYTE,
                            from, kDataTag, MPI_COMM_WORLD, flight.receive()),
                  "MPI_Irecv");
      if (sending)
        check_mpi(MPI_Isend(block.data(), static_cast<int>(block.size()), MPI_BYTE, to, kDataTag,
                            MPI_COMM_WORLD, flight.send()),
                  "MPI_Isend");
      flight.wait();
      if (sending) {
        out = out.subspan(block.size());
        sending = block.size() == block_;
      }
      if (receiving) {
        const auto bytes = static_cast<size_t>(flight.received_bytes());
        received += bytes;
        receiving = bytes == block_;
      }
    }
    return received;
  }

 private:
  size_t block_;
  int rank_ = 0, size_ = 1;
};

bool running() {
  int initialized = 0, finalized = 0;
  MPI_Initialized(&initialized);
  MPI_Finalized(&finalized);
  return initialized && !finalized;
}

std::unique_ptr<Communicator> make(size_t block_bytes) {
  if (!running()) {
    int provided = 0;
    check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init");
    check<Fault>(provided >= MPI_THREAD_SERIALIZED,
                 "[mpi] this MPI library cannot be used from a communication thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  return std::make_unique<MpiCommunicator>(block_bytes);
}

/// Dissemination of the highest code; a barrier as well. Gives up at the deadline.
bool agree(int& code, Clock::time_point deadline) {
  int rank = 0, ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int distance = 1; distance < ranks; distance *= 2) {
    InFlight flight;
    int theirs = 0;
    MPI_Irecv(&theirs, 1, MPI_INT, (rank - distance + ranks) % ranks, kFinishTag, MPI_COMM_WORLD,
              flight.receive());
    MPI_Isend(&code, 1, MPI_INT, (rank + distance) % ranks, kFinishTag, MPI_COMM_WORLD,
              flight.send());
    if (!flight.wait(deadline)) return false;
    code = std::max(code, theirs);
  }
  return true;
}

/// MPI_Finalize of MPICH over UCX/TCP hangs in about half of all runs, while closing connections
/// that nobody needs any more. Whoever is stuck there ends without it.
void finalize(int code) {
  std::mutex mutex;
  std::condition_variable changed;
  bool finalized = false;
  std::jthread watch([&] {
    std::unique_lock lock(mutex);
    if (!changed.wait_for(lock, kFinalizeLimit, [&] { return finalized; })) _exit(code);
  });
  MPI_Finalize();
  {
    const std::lock_guard lock(mutex);
    finalized = true;
  }
  changed.notify_one();
}

int finish(int code) {
  if (!running()) return code;
  std::cout.flush();
  std::fflush(nullptr);
  const auto deadline = code == 0 ? Clock::time_point::max() : Clock::now() + kGrace;
  if (!agree(code, deadline)) MPI_Abort(MPI_COMM_WORLD, code);
  finalize(code);
  return code;
}

const bool registered = [] {
  mpi_transport() = {make, finish};
  return true;
}();

}  // namespace
}  // namespace tw
