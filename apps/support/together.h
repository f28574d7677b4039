// Small things the ranks of a run do together, outside the training step.
#pragma once

#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "comm/collectives.h"

namespace tw {

/// Runs `body` on this rank; when it throws UserError (or a file system error, which becomes one)
/// anywhere, every rank throws that same error (the lowest rank's), so that all end alike.
void agree(Context& ctx, Communicator& comm, const std::function<void()>& body);

/// Every rank's text, in rank order, on every rank.
std::vector<std::string> gather_texts(Context& ctx, Communicator& comm, const std::string& text);

/// Rank 0's text on every rank.
std::string broadcast_text(Context& ctx, Communicator& comm, std::string text);

/// Every rank's item, in rank order, on every rank.
template <class T>
std::vector<T> gather(Context& ctx, Communicator& comm, const T& item) {
  static_assert(std::is_trivially_copyable_v<T>);
  GatheredBlocks blocks;
  allgather(ctx, comm, std::as_bytes(std::span(&item, 1)), sizeof(T), blocks);
  std::vector<T> items(static_cast<size_t>(comm.size()));
  for (int r = 0; r < comm.size(); ++r)
    std::memcpy(&items[static_cast<size_t>(r)], blocks[r].data(), sizeof(T));
  return items;
}

/// Mean over ranks of equally long vectors, the same bits everywhere.
std::vector<float> mean_over_ranks(Context& ctx, Communicator& comm, std::span<const float> mine);

}  // namespace tw
