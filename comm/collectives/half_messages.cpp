#include "comm/collectives/half_messages.h"

#include <memory>
#include <optional>

#include "comm/communicator_decorator.h"
#include "engine/core/buffer.h"
#include "engine/ops/half.h"

namespace tw {
namespace {

/// Rounds messages that lie in the vector of the sum or in its scratch. Others (the measurement of
/// a link) are sent as they are.
class HalfCommunicator : public CommunicatorDecorator {
 public:
  HalfCommunicator(Communicator& inner, ValueFormat format)
      : CommunicatorDecorator(inner), format_(format) {}

  /// Prepares the next sum.
  void begin(std::span<const float> data, std::span<const float> scratch) {
    inherit_timeout(inner_);
    data_ = std::as_bytes(data);
    scratch_ = std::as_bytes(scratch);
  }
  bool sends_over(const Communicator& comm) const { return &inner_ == &comm; }
  size_t float_bytes() const override { return size_of(format_); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    if (rounds(out)) out = narrowed(ctx, out);
    if (!rounds(in)) return inner_.exchange(ctx, to, out, from, in);
    const Bytes half = room(ctx, in_, in.size() / 2);
    const size_t received = inner_.exchange(ctx, to, out, from, half);
    check<Fault>(received % 2 == 0, "[allreduce] rank {} sent {} bytes, not whole 16-bit values",
                 from, received);
    ops::widen(ctx, format_, half.first(received), floats(in.first(2 * received)));
    return 2 * received;
  }

 private:
  bool rounds(ConstBytes message) const {
    const auto lies_in = [&](ConstBytes memory) {
      return message.data() >= memory.data() &&
             message.data() + message.size() <= memory.data() + memory.size();
    };
    return !message.empty() && (lies_in(data_) || lies_in(scratch_));
  }
  static std::span<float> floats(Bytes bytes) {
    return {reinterpret_cast<float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
  static Bytes room(const Context& ctx, Buffer& buffer, size_t bytes) {
    // chunks differ by a value, and freeing waits for kernels of all GPUs
    buffer.grow(ctx.device(), buffer.bytes() < bytes ? bytes + 64 : bytes);
    return buffer.as<std::byte>().first(bytes);
  }
  Bytes narrowed(Context& ctx, ConstBytes out) {
    const Bytes half = room(ctx, out_, out.size() / 2);
    const auto* values = reinterpret_cast<const float*>(out.data());
    ops::narrow(ctx, format_, {values, out.size() / sizeof(float)}, half);
    return half;
  }

  ValueFormat format_;
  ConstBytes data_, scratch_;
  Buffer out_, in_;
};

}  // namespace

Allreduce with_messages_in(ValueFormat format, Allreduce allreduce) {
  if (format == ValueFormat::f32) return allreduce;
  // kept from call to call, so that later ones allocate nothing
  const auto kept = std::make_shared<std::optional<HalfCommunicator>>();
  return [format, allreduce = std::move(allreduce), kept](
             Context& ctx, Communicator& comm, std::span<float> data, std::span<float> scratch) {
    if (comm.size() == 1) return;
    if (!*kept || !(*kept)->sends_over(comm)) kept->emplace(comm, format);
    (*kept)->begin(data, scratch);
    allreduce(ctx, **kept, data, scratch);
    // a rank has its own chunk unrounded; on the others' chunks this changes nothing
    const Bytes rounded = std::as_writable_bytes(scratch).first(2 * data.size());
    ops::narrow(ctx, format, data, rounded);
    ops::widen(ctx, format, rounded, data);
  };
}

}  // namespace tw
