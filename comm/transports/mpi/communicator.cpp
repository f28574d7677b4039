// MPI transport: ranks are the processes of mpirun. Device memory goes straight to a library that
// can read and write it, otherwise through pinned blocks.

#include "comm/transports/mpi/communicator.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "comm/launcher.h"
#include "comm/on_device.h"
#include "comm/transports.h"
#include "comm/transports/deadline.h"
#include "comm/transports/mpi/collectives.h"
#include "comm/transports/mpi/mpi_c.h"
#include "comm/transports/mpi/requests.h"
#include "comm/transports/mpi/shutdown.h"
#include "comm/transports/mpi/staging.h"
#include "engine/core/error.h"
#include "engine/core/text.h"

namespace tw::mpi {
namespace {

class MpiCommunicator : public Communicator {
 public:
  explicit MpiCommunicator(const MpiOptions& options)
      : block_(options.block_bytes),
        takes_device_memory_(takes_device_memory()),
        stages_all_(options.stage_all),
        staged_(*this, options.stage_bytes) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size_);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* transport() const override { return "mpi"; }

  VendorCollectives* vendor() override { return &vendor_; }

  /// The caller has already reported the reason.
  void abort(const char*, int code) override { end_all_ranks(code); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    if (stages_all_ || lies_on_device(ctx, out) || lies_on_device(ctx, in)) {
      if (!takes_device_memory_ || stages_all_) return staged_.exchange(ctx, to, out, from, in);
      ctx.synchronize();  // MPI does not wait for streams
    }
    // MPI counts in int, so long messages travel in blocks; the first that is not full is the last
    bool sending = to >= 0, receiving = from >= 0;
    size_t received = 0;
    while (sending || receiving) {
      MpiRequests flight;
      const ConstBytes block = out.first(std::min(block_, out.size()));
      const Bytes target = in.first(std::min(block_, in.size()));
      if (receiving) flight.receive(target.data(), target.size(), from, kTag);
      if (sending) flight.send(block.data(), block.size(), to, kTag);
      WaitLimit limit = wait_limit();
      if (!flight.wait(limit)) throw_timeout(flight.received() ? to : from);
      if (sending) {
        out = out.subspan(block.size());
        sending = block.size() == block_;
      }
      if (receiving) {
        const size_t bytes = flight.received_bytes();
        in = in.subspan(bytes);
        received += bytes;
        receiving = bytes == block_;
      }
    }
    return received;
  }

 private:
  size_t block_;
  bool takes_device_memory_, stages_all_;
  int rank_ = 0, size_ = 1;
  StagedMessages staged_;
  MpiCollectives vendor_{*this, staged_};
};

}  // namespace

namespace {

/// Seconds that MPI_Init may take; 0: no limit. An environment variable, because the options of the
/// program are read later. UserError when it is no number of seconds.
double start_timeout() {
  const char* variable = std::getenv("THINWIRE_START_TIMEOUT");
  if (!variable) return 300;
  const std::optional<double> seconds = number_in<double>(variable);
  check(seconds && *seconds >= 0,
        "[mpi] THINWIRE_START_TIMEOUT is {}; expected seconds, at least 0 (0: no limit)", variable);
  return std::min(*seconds, kLongestTimeout);
}

/// Ends this process, and thereby the job, because other ranks have not started. The lowest rank
/// that waits goes first; the launcher ends the others before they report.
void end_late_start(double limit) {
  const std::optional<Launcher> launcher = find_launcher();
  const int rank = launcher ? launcher->rank : 0;
  std::this_thread::sleep_for(std::chrono::seconds(std::min(rank, 10)));
  write_error_line(fmt::format(
      "error: [mpi] rank {} has waited {} s in MPI_Init for the other ranks; one may be "
      "frozen, or its machine lost (THINWIRE_START_TIMEOUT changes the limit)",
      rank, limit));
  _exit(1);
}

}  // namespace

std::unique_ptr<Communicator> make_communicator(const MpiOptions& options) {
  if (!running()) {
    int ended = 0;
    MPI_Finalized(&ended);
    check(ended == 0, "[mpi] MPI has ended; a process can start it only once");
    int provided = 0, code = MPI_SUCCESS;
    const auto init = [&] {
      code = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    };
    if (const double limit = start_timeout(); limit > 0)
      run_with_deadline(std::chrono::round<Limit>(std::chrono::duration<double>(limit)), init,
                        [limit] { end_late_start(limit); });
    else
      init();
    check_call(code, "MPI_Init");
    check<Fault>(provided >= MPI_THREAD_SERIALIZED,
                 "[mpi] this MPI library cannot be used from a communication thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  return std::make_unique<MpiCommunicator>(options);
}

namespace {

/// MPI allows this call before its start.
std::string library() {
  std::string name(MPI_MAX_LIBRARY_VERSION_STRING, '\0');
  int length = 0;
  if (MPI_Get_library_version(name.data(), &length) != MPI_SUCCESS) return "MPI";
  name.resize(static_cast<size_t>(length));
  name.resize(std::min(name.find_first_of("\n,"), name.size()));
  std::ranges::replace(name, '\t', ' ');
  return name;
}

const bool communicator_registered =
    optional_transports().add({"mpi",
                               "the processes of mpirun",
                               {.start = [] { return make_communicator(); },
                                .finish = finish,
                                .meet = meet,
                                .library = library,
                                .start_on = nullptr}});

}  // namespace
}  // namespace tw::mpi
