// Helpers of the dense collectives: messages of known length, even chunks, and ranks counted from a
// root.
#pragma once

#include <algorithm>

#include "comm/communicator.h"
#include "engine/core/error.h"

namespace tw {

/// An exchange that must receive exactly in.size() bytes; otherwise Fault with the collective's
/// name.
inline void exchange_exactly(const char* collective, Context& ctx, Communicator& comm, int to,
                             ConstBytes out, int from, Bytes in) {
  const size_t received = comm.exchange(ctx, to, out, from, in);
  check<Fault>(received == in.size(), "[{}] rank {} sent {} bytes, rank {} expected {}", collective,
               from, received, comm.rank(), in.size());
}

inline void exchange_exactly(const char* collective, Context& ctx, Communicator& comm, int to,
                             std::span<const float> out, int from, std::span<float> in) {
  exchange_exactly(collective, ctx, comm, to, std::as_bytes(out), from, std::as_writable_bytes(in));
}

inline void check_scratch(const char* collective, std::span<const float> data,
                          std::span<const float> scratch) {
  check<Fault>(scratch.size() >= data.size(), "[{}] scratch holds {} floats; {} are needed",
               collective, scratch.size(), data.size());
}

/// Where chunk c begins of the `parts` into which n elements are cut as evenly as possible.
constexpr size_t chunk_begin(size_t n, int parts, int c) {
  return n * static_cast<size_t>(c) / static_cast<size_t>(parts);
}

/// Chunks [first, last) of data cut into `parts`.
template <class T>
std::span<T> chunks(std::span<T> data, int parts, int first, int last) {
  const size_t begin = chunk_begin(data.size(), parts, first);
  return data.subspan(begin, chunk_begin(data.size(), parts, last) - begin);
}

/// Ranks counted from the root: the root is 0, the next rank is 1, and so on, modulo their number.
class RelativeRank {
 public:
  RelativeRank(const Communicator& comm, int root) : ranks_(comm.size()), root_(root) {}
  int relative(int rank) const { return (rank - root_ + ranks_) % ranks_; }
  int rank(int relative) const { return (relative + root_) % ranks_; }

 private:
  int ranks_, root_;
};

}  // namespace tw
