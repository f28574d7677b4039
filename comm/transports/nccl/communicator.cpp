// NCCL transport: every rank has a GPU of its own, and messages go from one GPU's memory to the
// other's. Host memory is copied to pinned blocks, which NCCL reads and writes from the GPU: the
// copy of one block overlaps with the transfer of the block before it.

#include <cstring>
#include <optional>

#include "comm/collectives/collectives.h"
#include "comm/collectives/vendor.h"
#include "comm/on_device.h"
#include "comm/transports.h"
#include "comm/transports/double_buffer.h"
#include "comm/transports/gpu_topology.h"
#include "comm/transports/length_prefixed.h"
#include "comm/transports/nccl/connection.h"
#include "engine/core/buffer.h"
#include "engine/cuda/cuda.h"

namespace tw::nccl {
namespace {

/// For host memory; a multiple of a float. Device memory travels whole.
constexpr size_t kBlock = size_t{8} << 20;

class NcclCommunicator : public LengthPrefixedCommunicator, public VendorCollectives {
 public:
  NcclCommunicator(Communicator& bootstrap, int gpu, const ncclUniqueId& id)
      : LengthPrefixedCommunicator(bootstrap), gpu_(gpu) {
    set_timeout(bootstrap.timeout());
    const OperationScope operation(*this, "nccl");
    cuda::expect(cudaSetDevice(gpu), "device");
    // pinned here, because pinning may wait for kernels, and those of an exchange wait for other
    // ranks
    out_ = Buffer::pinned(Device::cuda, 2 * kBlock);
    in_ = Buffer::pinned(Device::cuda, 2 * kBlock);
    nccl_.emplace(*this, gpu, id);
  }

  const char* transport() const override { return "nccl"; }
  int gpu() const override { return gpu_; }
  VendorCollectives* vendor() override { return this; }
  void abort(const char* reason, int code) override {
    inner_.abort(reason, code);
    nccl_->abort();
  }

  void broadcast(Context& ctx, int root, Bytes data) override {
    in_place(ctx, data, [&](ncclComm_t comm, cudaStream_t stream, Bytes part) {
      return ncclBroadcast(part.data(), part.data(), part.size(), ncclUint8, root, comm, stream);
    });
  }
  void reduce(Context& ctx, int root, std::span<float> data) override {
    in_place(ctx, std::as_writable_bytes(data),
             [&](ncclComm_t comm, cudaStream_t stream, Bytes part) {
               return ncclReduce(part.data(), part.data(), part.size() / sizeof(float), ncclFloat32,
                                 ncclSum, root, comm, stream);
             });
  }
  void allreduce(Context& ctx, std::span<float> data) override {
    in_place(ctx, std::as_writable_bytes(data),
             [&](ncclComm_t comm, cudaStream_t stream, Bytes part) {
               return ncclAllReduce(part.data(), part.data(), part.size() / sizeof(float),
                                    ncclFloat32, ncclSum, comm, stream);
             });
  }

 protected:
  void move(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  template <class Call>
  void in_place(Context& ctx, Bytes data, const Call& call);
  static bool lies_on_host(const Context& ctx, ConstBytes data) {
    return !data.empty() && !lies_on_device(ctx, data);
  }

  static std::byte* block(const Buffer& stage, int slot) {
    return stage.data() + static_cast<size_t>(slot) * kBlock;
  }

  int gpu_;
  Buffer out_, in_;  // two blocks each
  std::optional<NcclConnection> nccl_;
};

void NcclCommunicator::move(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  nccl_->begin(ctx);
  const bool on_host = lies_on_host(ctx, out) || lies_on_host(ctx, in);
  const size_t most = std::max(out.size(), in.size()), length = on_host ? kBlock : most;
  const int peer = in.empty() ? to : from;
  double_buffered(
      blocks_in(most, length),
      [&](size_t j, int slot) {
        ConstBytes leaving = block_of(out, length, j);
        Bytes coming = block_of(in, length, j);
        if (on_host) {
          if (!leaving.empty()) std::memcpy(block(out_, slot), leaving.data(), leaving.size());
          leaving = {block(out_, slot), leaving.size()};
          coming = {block(in_, slot), coming.size()};
        }
        nccl_->queue(peer, [&](ncclComm_t comm, cudaStream_t stream) {
          const ncclResult_t sent = leaving.empty() ? ncclSuccess
                                                    : ncclSend(leaving.data(), leaving.size(),
                                                               ncclUint8, to, comm, stream);
          if (sent != ncclSuccess && sent != ncclInProgress) return sent;
          return coming.empty()
                     ? ncclSuccess
                     : ncclRecv(coming.data(), coming.size(), ncclUint8, from, comm, stream);
        });
        nccl_->record(slot);
      },
      [&](size_t j, int slot) {
        nccl_->wait(slot, peer);
        const Bytes arrived = block_of(in, length, j);
        if (on_host && !arrived.empty())
          std::memcpy(arrived.data(), block(in_, slot), arrived.size());
      });
}

/// Calls one of NCCL's collectives on data.
template <class Call>
void NcclCommunicator::in_place(Context& ctx, Bytes data, const Call& call) {
  if (data.empty()) return;
  nccl_->begin(ctx);
  const bool on_host = lies_on_host(ctx, data);
  const size_t length = on_host ? kBlock : data.size();
  double_buffered(
      blocks_in(data.size(), length),
      [&](size_t j, int slot) {
        Bytes part = block_of(data, length, j);
        if (on_host) {
          std::memcpy(block(out_, slot), part.data(), part.size());
          part = {block(out_, slot), part.size()};
        }
        nccl_->queue(
            -1, [&](ncclComm_t comm, cudaStream_t stream) { return call(comm, stream, part); });
        nccl_->record(slot);
      },
      [&](size_t j, int slot) {
        nccl_->wait(slot, -1);
        const Bytes part = block_of(data, length, j);
        if (on_host) std::memcpy(part.data(), block(out_, slot), part.size());
      });
}

std::unique_ptr<Communicator> make(Context& ctx, Communicator& bootstrap, std::string& notice) {
  const OperationScope operation(bootstrap, "nccl");
  int gpus = 0;
  cuda::expect(cudaGetDeviceCount(&gpus), "devices");
  const int gpu = gpu_in_turn(ctx, bootstrap, gpus);
  char bus[20] = "";
  cuda::expect(cudaDeviceGetPCIBusId(bus, sizeof bus, gpu), "device");
  const auto locations = gather_gpus(ctx, bootstrap, bus);
  if (const auto shared = shared_gpu(locations)) {
    notice = shared_gpu_notice(*shared, locations, bootstrap.transport());
    return nullptr;
  }
  ncclUniqueId id{};
  if (bootstrap.rank() == 0) {
    const ncclResult_t result = ncclGetUniqueId(&id);
    check<Fault>(result == ncclSuccess, "[nccl] rank 0: id: {} {}", ncclGetErrorString(result),
                 ncclGetLastError(nullptr));
  }
  tw::broadcast(ctx, bootstrap, 0, std::as_writable_bytes(std::span(&id, 1)));
  return std::make_unique<NcclCommunicator>(bootstrap, gpu, id);
}

const bool communicator_registered =
    optional_transports().add({"nccl",
                               "messages between GPUs, one per rank",
                               {.start = nullptr, .finish = nullptr, .start_on = make}});

}  // namespace
}  // namespace tw::nccl
