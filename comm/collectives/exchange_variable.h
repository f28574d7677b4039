// A message of unknown length, over a communicator whose receiver must provide the memory first.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace tw {

/// Sends `out` to rank `to` and receives a message of the same form from rank `from`:
///
///   u64 length x `lengths` | payload: the blocks of these lengths, one after the other
///
/// The first message carries the lengths and at most `limit` bytes of the payload. The lengths tell
/// the receiver how much is left; that follows in a second message. All ranks pass the same
/// `lengths` and `limit`; each direction has its second message only if its payload exceeds limit.
/// `in` grows to hold what came and never shrinks. Returns the received payload's length in bytes.
/// Fault, in the name of `operation`, when the length is above `most` or not what was received.
size_t exchange_variable(const char* operation, Context& ctx, Communicator& comm, int to,
                         ConstBytes out, int from, size_t lengths, size_t limit, size_t most,
                         std::vector<std::byte>& in);

}  // namespace tw
