#include "apps/common/rank_utils.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/version.h"
#include "comm/host_id.h"
#include "comm/transports.h"
#include "engine/core/error.h"
#include "engine/io/file.h"

namespace tw {

void run_collectively(Communicator& comm, const std::function<void()>& body) {
  std::string error;
  try {
    body();
  } catch (const UserError& caught) {
    error = caught.what();
  } catch (const std::filesystem::filesystem_error& caught) {
    if (is_of_disk(caught.code().value())) throw;
    error = fmt::format("[file] {}: {}", caught.path1().string(), caught.code().message());
  }
  const OperationScope operation(comm, "setup");
  const std::vector<std::string> errors = gather_texts(comm, error);
  const auto first = std::ranges::find_if(errors, [](const auto& text) { return !text.empty(); });
  if (first == errors.end()) return;
  const auto rank = static_cast<size_t>(first - errors.begin());
  const std::vector<std::string> hosts = gather_texts(comm, host_name());
  const bool several = std::ranges::count(hosts, hosts[0]) < std::ssize(hosts);
  throw UserError(
      rank == 0 ? *first
                : fmt::format("{} (rank {}{})", *first, rank, several ? " on " + hosts[rank] : ""));
}

std::string common_fault_of(const Communicator& world, const std::function<void()>& body) {
  try {
    body();
  } catch (const CollectiveFault& fault) {
    check<Fault>(meet_mpi(world.timeout() / 2), "{}; the other ranks have no such fault",
                 fault.what());
    return fault.what();
  }
  return "";
}

std::string broadcast_text(Communicator& comm, std::string text) {
  uint64_t length = text.size();
  broadcast(comm, 0, std::as_writable_bytes(std::span(&length, 1)));
  check<Fault>(length <= kMostBlock, "[setup] rank 0 announces a text of {} bytes; at most {}",
               length, kMostBlock);
  text.resize(length);
  broadcast(comm, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

std::vector<std::string> build_lines() {
  return {"version is " + version(), "build is " + build_id()};
}

std::vector<std::string> option_lines(const OptionTable& table) {
  std::vector<std::string> lines;
  const Json options = table.json_with_settings(kLocal);
  for (const auto& [key, value] : options.items())
    lines.push_back(fmt::format("{} is {}", key, value.dump()));
  return lines;
}

std::vector<float> mean_over_ranks(Communicator& comm, std::span<const float> mine) {
  std::vector<float> sum(mine.begin(), mine.end());
  allreduce(comm, sum);
  for (float& value : sum) value /= static_cast<float>(comm.size());
  return sum;
}

}  // namespace tw
