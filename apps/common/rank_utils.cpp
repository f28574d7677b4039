#include "apps/common/rank_utils.h"

#include <filesystem>

#include "engine/core/error.h"

namespace tw {

void run_collectively(Communicator& comm, const std::function<void()>& body) {
  std::string error;
  try {
    body();
  } catch (const UserError& caught) {
    error = caught.what();
  } catch (const std::filesystem::filesystem_error& caught) {
    error = fmt::format("[file] {}: {}", caught.path1().string(), caught.code().message());
  }
  const OperationScope operation(comm, "setup");
  for (const std::string& text : gather_texts(comm, error))
    if (!text.empty()) throw UserError(text);
}

std::vector<std::string> gather_texts(Communicator& comm, const std::string& text) {
  GatheredBlocks blocks;
  allgather(comm, std::as_bytes(std::span(text.data(), text.size())), 0, blocks);
  std::vector<std::string> texts;
  for (int r = 0; r < comm.size(); ++r)
    texts.emplace_back(reinterpret_cast<const char*>(blocks[r].data()), blocks[r].size());
  return texts;
}

std::string broadcast_text(Communicator& comm, std::string text) {
  uint64_t length = text.size();
  broadcast(comm, 0, std::as_writable_bytes(std::span(&length, 1)));
  text.resize(length);
  broadcast(comm, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::vector<float> mean_over_ranks(Communicator& comm, std::span<const float> mine) {
  std::vector<float> sum(mine.begin(), mine.end());
  allreduce(comm, sum);
  for (float& value : sum) value /= static_cast<float>(comm.size());
  return sum;
}

}  // namespace tw
