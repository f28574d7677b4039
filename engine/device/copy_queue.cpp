#include "engine/device/copy_queue.h"

#include <cstring>

namespace tw {

std::unique_ptr<CopyQueue> CopyQueue::create(Context& ctx) {
  return copy_queue_dispatch(ctx.device(), ctx);
}

namespace {

class CpuCopies final : public CopyQueue {
 public:
  void copy(const void* from, void* to, size_t bytes) override {
    if (bytes > 0) std::memcpy(to, from, bytes);
  }
  void wait_for(Context&) override {}
  void make_wait(Context&) override {}
  void record(int) override {}
  void wait(int) override {}
};

const bool copy_queue_registered = copy_queue_dispatch.add<CpuCopies>(Device::cpu);

}  // namespace
}  // namespace tw
