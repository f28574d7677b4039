// The start of NCCL over another transport, with peers that send any bytes: places of the GPUs, the
// id, and messages behind their lengths. Each ends, or throws a Fault.
#include "comm/collectives/collectives.h"
#include "comm/transports/gpu_topology.h"
#include "comm/transports/length_prefixed.h"
#include "tests/fuzz/support/script.h"

namespace {

/// Takes long messages from the script, as NCCL would move them.
class Moving : public tw::LengthPrefixedCommunicator {
 public:
  Moving(tw::Communicator& bootstrap, tw::fuzz::Script& script)
      : LengthPrefixedCommunicator(bootstrap), script_(script) {}

 protected:
  void move(tw::Context&, int, tw::ConstBytes, int, tw::Bytes in) override { script_.take(in); }

 private:
  tw::fuzz::Script& script_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  tw::fuzz::Script script(data, size);
  const auto place = script.number<uint8_t>();
  tw::fuzz::ScriptedCommunicator bootstrap(script, place);
  tw::Context ctx;
  try {
    if (place % 2 == 0) {
      (void)tw::gpu_in_turn(ctx, bootstrap, 1 + place % 8);
      const auto gpus = tw::gather_gpus(ctx, bootstrap, "0000:1b:00.0");
      if (const auto shared = tw::shared_gpu(gpus))
        (void)tw::shared_gpu_notice(*shared, gpus, "MPI");
      std::array<std::byte, 128> id;
      tw::broadcast(ctx, bootstrap, 0, id);
    } else {
      Moving comm(bootstrap, script);
      tw::GatheredBlocks blocks;
      std::array<std::byte, 100> mine{};
      tw::allgather(ctx, comm, mine, mine.size(), blocks, 8000);
      tw::barrier(ctx, comm);
    }
  } catch (const tw::Fault&) {
  }
  return 0;
}
