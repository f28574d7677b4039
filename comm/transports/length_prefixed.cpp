#include "comm/transports/length_prefixed.h"

#include <cstring>

#include "comm/on_device.h"

namespace tw {
namespace {

/// A message's length, followed by the message if it is short.
struct Prefix {
  uint64_t bytes = 0;
  std::byte carried[LengthPrefixedCommunicator::kCarried];
};
constexpr size_t kLengthOnly = sizeof(uint64_t);

}  // namespace

size_t LengthPrefixedCommunicator::do_exchange(Context& ctx, int to, ConstBytes out, int from,
                                               Bytes in) {
  inner_.inherit_timeout(*this);
  Prefix outgoing, incoming;
  outgoing.bytes = out.size();
  const bool carries = out.size() <= kCarried && !lies_on_device(ctx, out);
  if (carries && !out.empty()) std::memcpy(outgoing.carried, out.data(), out.size());
  const size_t received = inner_.exchange(
      ctx, to,
      std::as_bytes(std::span(&outgoing, 1)).first(kLengthOnly + (carries ? out.size() : 0)), from,
      std::as_writable_bytes(std::span(&incoming, from >= 0 ? 1 : 0)));

  const auto bytes = static_cast<size_t>(incoming.bytes);
  bool carried = true;
  if (from >= 0) {
    check<Fault>(received >= kLengthOnly, "[{}] rank {} sent {} bytes instead of a length",
                 transport(), from, received);
    check<Fault>(bytes <= in.size(),
                 "[{}] a message of {} bytes does not fit in the {} bytes the receiver has",
                 transport(), bytes, in.size());
    carried = received == kLengthOnly + bytes;
    check<Fault>(carried || received == kLengthOnly,
                 "[{}] rank {} sent {} bytes after a length of {}", transport(), from,
                 received - kLengthOnly, bytes);
    if (carried) copy_bytes(ctx, std::span(incoming.carried).first(bytes), in.first(bytes));
  }
  const ConstBytes going = carries ? ConstBytes{} : out;
  const Bytes coming = carried ? Bytes{} : in.first(bytes);
  if (!going.empty() || !coming.empty()) move(ctx, to, going, from, coming);
  return bytes;
}

}  // namespace tw
