#include "comm/transports.h"

namespace tw {
namespace {

class SelfCommunicator : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  const char* transport() const override { return "self"; }
  void abort(const char*, int) override {}

 protected:
  // collectives send nothing with one rank
  size_t do_exchange(Context&, int, ConstBytes, int, Bytes) override { return 0; }
};

}  // namespace

std::unique_ptr<Communicator> make_self_communicator() {
  return std::make_unique<SelfCommunicator>();
}

}  // namespace tw
