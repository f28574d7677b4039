#include "sparsify/exchanges/dense_sum.h"

#include <cmath>

#include "comm/collectives/half_messages.h"
#include "engine/core/copy.h"
#include "engine/ops/nonfinite.h"
#include "sparsify/exchange.h"

namespace tw {

namespace {

ValueFormat format_of(const Settings& settings) { return value_format(settings.text(kSumValues)); }

const Collective<Allreduce>& collective_of(const Settings& settings) {
  return allreduces().find(settings.text(kSumCollective)).value;
}

}  // namespace

DenseSum::DenseSum(const Settings& settings)
    : format_(format_of(settings)), collective_(collective_of(settings)) {
  validate(settings);
  allreduce_ = with_messages_in(format_, collective_(settings));
}

void DenseSum::validate(const Settings& settings) {
  check(!collective_of(settings).by_library || format_of(settings) == ValueFormat::f32,
        "[allreduce] {} is {}, but the {} collective sends f32; use another collective", kSumValues,
        settings.text(kSumValues), allreduces().find(settings.text(kSumCollective)).name);
}

double DenseSum::seconds(const LinkCost& link, int ranks, size_t n) const {
  return collective_.seconds(with_values_of(value_bytes(), link), ranks, static_cast<double>(n));
}

void DenseSum::operator()(Context& ctx, Communicator& comm, std::span<float> values_status) {
  const size_t n = values_status.size();
  if (ctx.device() != Device::cpu && n <= kShort && !collective_.by_library && comm.size() > 1) {
    host_.resize(2 * n);
    const std::span<float> values = std::span(host_).first(n);
    copy_to_host(ctx, values_status, values);
    allreduce_(comm.host(), comm, values, std::span(host_).last(n));
    copy_to_device(ctx, values, values_status);
  } else {
    scratch_.grow(ctx.device(), values_status.size_bytes());
    allreduce_(ctx, comm, values_status, scratch_.as<float>().first(n));
  }
  if (format_ != ValueFormat::fp16 || comm.size() == 1) return;
  // a gradient that is not finite makes the status NaN, which ends the run with its own message
  if (std::isnan(value_at(ctx, &values_status.back()))) return;
  const size_t at = ops::first_nonfinite(ctx, values_status);
  check<Fault>(at == values_status.size(),
               "[allreduce] the sum of element {} is beyond the range of fp16; use "
               "allreduce.values=bf16",
               at);
}

}  // namespace tw
