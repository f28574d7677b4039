// HostStage: where dense sums are formed. Collectives work in the host's memory: beside a GPU on a
// copy of its vector, on the CPU on the vector itself.
#pragma once

#include <memory>

#include "engine/buffer.h"
#include "engine/copy.h"

namespace tw {

class HostStage {
 public:
  /// For everything that is done there.
  Context& context(Context& device) {
    if (device.device() == Device::cpu) return device;
    if (!own_) own_ = std::make_unique<Context>(Device::cpu, device.threads());
    return *own_;
  }

  /// `data`, a vector of ctx's device, as the host sees it; usable until the next call.
  std::span<float> fetch(Context& ctx, std::span<float> data) {
    if (ctx.device() == Device::cpu) return data;
    if (copy_.bytes() < data.size_bytes()) copy_ = Buffer(Device::cpu, data.size_bytes());
    copy_to_host(ctx, data, host(data.size()));
    return host(data.size());
  }

  /// Takes what was fetched back to `data`: the same vector, or its beginning.
  void store(Context& ctx, std::span<float> data) {
    if (ctx.device() != Device::cpu) copy_to_device(ctx, host(data.size()), data);
  }

 private:
  std::span<float> host(size_t n) const { return copy_.as<float>().first(n); }

  std::unique_ptr<Context> own_;
  Buffer copy_;
};

}  // namespace tw
