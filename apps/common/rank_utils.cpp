#include "apps/common/rank_utils.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "apps/common/version.h"
#include "comm/host_id.h"
#include "comm/transports.h"
#include "data/class_names.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
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
  check<Fault>(length <= kMostBlock, "[setup] rank 0 announces a text of {} bytes; at most {}",
               length, kMostBlock);
  text.resize(length);
  broadcast(comm, 0, std::as_writable_bytes(std::span(text.data(), text.size())));
  return text;
}

void check_same_lines(Communicator& comm, size_t count,
                      const std::function<std::string(size_t)>& line) {
  if (comm.size() == 1) return;
  const OperationScope operation(comm, "setup");
  std::vector<uint64_t> hashes(count + 1);  // of the first i lines
  Hash hash;
  for (size_t i = 0; i < count; ++i) hashes[i + 1] = hash.add(line(i)).add("\n").value();
  const auto differs = [&](size_t lines) {  // among the first lines of the ranks
    const std::array<uint64_t, 2> mine{std::min(lines, count), hashes[std::min(lines, count)]};
    const auto all = gather(comm, mine);
    return std::ranges::any_of(all, [&](const auto& other) { return other != all[0]; });
  };
  const std::vector<uint64_t> counts = gather(comm, uint64_t{count});
  size_t same = 0, other = std::ranges::max(counts);
  if (!differs(other)) return;
  while (other - same > 1) {
    const size_t middle = same + (other - same) / 2;
    (differs(middle) ? other : same) = middle;
  }
  const std::vector<std::string> texts =
      gather_texts(comm, same < count ? line(same).substr(0, 1000) : "nothing more");
  const auto found =
      std::ranges::find_if(texts, [&](const auto& text) { return text != texts[0]; });
  const std::string& theirs = found == texts.end() ? "another text" : *found;
  fail("[setup] {:.200} on rank {}; {:.200} on rank 0{}: all ranks must be the same", theirs,
       found - texts.begin(), texts[0], other_form_hint(theirs, texts));
}

void check_same_setup(Communicator& comm, const std::vector<std::string>& lines) {
  check_same_lines(comm, lines.size(), [&](size_t i) { return lines[i]; });
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
