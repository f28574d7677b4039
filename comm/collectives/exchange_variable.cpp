#include "comm/collectives/exchange_variable.h"

#include <algorithm>
#include <cstring>

namespace tw {
namespace {

void grow(std::vector<std::byte>& memory, size_t bytes) {
  if (memory.size() < bytes) memory.resize(bytes);
}

}  // namespace

size_t exchange_variable(const char* operation, Context& ctx, Communicator& comm, int to,
                         ConstBytes out, int from, size_t lengths, size_t limit, size_t most,
                         std::vector<std::byte>& in) {
  const size_t header = lengths * sizeof(uint64_t);
  const size_t out_first = std::min(out.size(), header + limit);
  grow(in, header + limit);
  const size_t received =
      comm.exchange(ctx, to, out.first(out_first), from, Bytes(in).first(header + limit));
  check<Fault>(received >= header, "[{}] rank {} sent {} bytes, too few for {} lengths", operation,
               from, received, lengths);
  size_t payload = 0;
  for (size_t i = 0; i < lengths; ++i) {
    uint64_t length = 0;
    std::memcpy(&length, in.data() + i * sizeof length, sizeof length);
    check<Fault>(length <= most, "[{}] rank {} announces {} bytes; expected at most {}", operation,
                 from, length, most);
    payload += length;
  }
  const size_t in_first = header + std::min(payload, limit), total = header + payload;
  check<Fault>(received == in_first, "[{}] rank {} sent {} bytes; expected {}", operation, from,
               received, in_first);
  const bool sends = out_first < out.size(), receives = in_first < total;
  if (!sends && !receives) return payload;
  grow(in, total);
  const size_t rest = comm.exchange(ctx, sends ? to : -1, out.subspan(out_first),
                                    receives ? from : -1, Bytes(in).first(total).subspan(in_first));
  check<Fault>(rest == total - in_first,
               "[{}] rank {} sent {} bytes in the second message; expected {}", operation, from,
               rest, total - in_first);
  return payload;
}

}  // namespace tw
