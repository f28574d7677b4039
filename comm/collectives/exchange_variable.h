// exchange_variable: an exchange in which the receiver does not know the length of the message.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace tw {

/// Sends `out` to rank `to` and receives a message of the same form from rank `from`:
///
///   u64 length x `lengths` | payload: the blocks of these lengths, one after the other
///
/// The first message carries the lengths and at most `limit` bytes of the payload. From the lengths
/// the receiver computes the rest, which follows in a second message. All ranks pass the same
/// `lengths` and `limit`; each direction has its second message only if its payload exceeds limit.
/// `in` grows to hold the message and never shrinks. Returns the length of the received payload in
/// bytes. Fault (its text starts with `operation`) when a block exceeds `most` bytes or the lengths
/// do not match the bytes received, before `in` grows for them. Every rank sends and receives: `to`
/// and `from` are ranks.
size_t exchange_variable(const char* operation, Context& ctx, Communicator& comm, int to,
                         ConstBytes out, int from, size_t lengths, size_t limit, size_t most,
                         std::vector<std::byte>& in);

}  // namespace tw
