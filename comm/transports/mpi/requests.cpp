// No call here blocks inside MPI: messages are started, tested a few times, and tested again after
// short sleeps. MPICH's blocking calls poll without yielding the core, which costs milliseconds per
// message when ranks outnumber cores.

#include "comm/transports/mpi/requests.h"

#include "comm/transports/poll.h"

namespace tw::mpi {
namespace {

constexpr int kTestsAtFirst = 100;  // about 10 us
constexpr int kTestsAfterNap = 20;  // one test advances a long message only a little

}  // namespace

void check_call(int code, const char* call) {
  if (code == MPI_SUCCESS) return;
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  fail<Fault>("[mpi] {} failed: {}", call, text.data());
}

void MpiRequests::receive(void* data, size_t bytes, int from, int tag) {
  check_call(
      MPI_Irecv(data, static_cast<int>(bytes), MPI_BYTE, from, tag, MPI_COMM_WORLD, &requests_[0]),
      "MPI_Irecv");
}

void MpiRequests::send(const void* data, size_t bytes, int to, int tag) {
  check_call(
      MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests_[1]),
      "MPI_Isend");
}

void MpiRequests::send_surely(const void* data, size_t bytes, int to, int tag) {
  check_call(
      MPI_Issend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &requests_[1]),
      "MPI_Issend");
}

bool MpiRequests::test() {
  int done = 0;
  const int code = MPI_Testall(2, requests_.data(), &done, statuses_.data());
  if (code == MPI_ERR_IN_STATUS)
    for (const MPI_Status& status : statuses_)
      if (status.MPI_ERROR != MPI_ERR_PENDING) check_call(status.MPI_ERROR, "a message");
  check_call(code, "MPI_Testall");
  return done != 0;
}

bool MpiRequests::wait(WaitLimit& limit) {
  return poll_until(limit, kTestsAtFirst, kTestsAfterNap, [this] { return test(); });
}

bool MpiRequests::received() {
  int done = 0;
  check_call(MPI_Test(&requests_[0], &done, &statuses_[0]), "MPI_Test");
  return done != 0;
}

size_t MpiRequests::received_bytes() const {
  int bytes = 0;
  MPI_Get_count(&statuses_[0], MPI_BYTE, &bytes);
  return static_cast<size_t>(bytes);
}

}  // namespace tw::mpi
