#include "sparsify/exchanges/dense_sum.h"

#include <cmath>

#include "comm/collectives/half_messages.h"
#include "engine/core/copy.h"
#include "engine/ops/nonfinite.h"

namespace tw {

namespace {

ValueFormat format_of(const Settings& settings) {
  return value_format(settings.text("allreduce.values"));
}

}  // namespace

DenseSum::DenseSum(const Settings& settings) : format_(format_of(settings)) {
  validate(settings);
  const auto& entry = allreduces().find(settings.text("allreduce.collective"));
  by_vendor_ = entry.name == "vendor";
  allreduce_ = with_messages_in(format_, entry.value(settings));
}

void DenseSum::validate(const Settings& settings) {
  const std::string& collective = allreduces().find(settings.text("allreduce.collective")).name;
  check(format_of(settings) == ValueFormat::f32 || collective != "vendor",
        "[allreduce] allreduce.values is {}, but the vendor collective sends f32; use another "
        "collective",
        settings.text("allreduce.values"));
}

void DenseSum::operator()(Context& ctx, Communicator& comm, std::span<float> values_status,
                          std::span<float> scratch) {
  const size_t n = values_status.size();
  if (ctx.device() != Device::cpu && n <= kShort && !by_vendor_ && comm.size() > 1) {
    host_.resize(2 * n);
    const std::span<float> values = std::span(host_).first(n);
    copy_to_host(ctx, values_status, values);
    allreduce_(comm.host(), comm, values, std::span(host_).last(n));
    copy_to_device(ctx, values, values_status);
  } else {
    allreduce_(ctx, comm, values_status, scratch);
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
