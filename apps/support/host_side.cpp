#include "apps/support/host_side.h"

namespace tw {

namespace {

Tensor flat(std::span<float> values, Device device) {
  return {values.data(), {static_cast<int64_t>(values.size())}, DType::f32, device};
}

}  // namespace

HostSide::HostSide(Context& ctx, Model& model) : ctx_(ctx), model_(model) {
  if (ctx.device() != Device::cpu) own_.emplace(Device::cpu, ctx.threads());
}

void HostSide::start() {
  if (!own_) return;
  for (Parameter p : model_.arena().parameters()) {
    p.init = Init::zeros;  // the values are fetched
    twin_.add(p);
  }
  twin_.allocate(*own_, 0);
}

void HostSide::fetch_gradients() {
  if (own_)
    copy(ctx_, flat(model_.arena().gradients(), ctx_.device()),
         flat(twin_.gradients(), Device::cpu));
}

void HostSide::fetch_values() {
  if (own_)
    copy(ctx_, flat(model_.arena().values(), ctx_.device()), flat(twin_.values(), Device::cpu));
}

void HostSide::publish_values() {
  if (own_)
    copy(ctx_, flat(twin_.values(), Device::cpu), flat(model_.arena().values(), ctx_.device()));
}

}  // namespace tw
