#include "comm/collectives/same_lines.h"

#include <algorithm>
#include <array>

#include "comm/collectives/collectives.h"
#include "engine/core/error.h"
#include "engine/core/hash.h"
#include "engine/core/utf8.h"

namespace tw {

std::vector<std::string> gather_texts(Communicator& comm, const std::string& text) {
  GatheredBlocks blocks;
  allgather(comm, std::as_bytes(std::span(text.data(), text.size())), 0, blocks);
  std::vector<std::string> texts;
  for (int r = 0; r < comm.size(); ++r)
    texts.emplace_back(reinterpret_cast<const char*>(blocks[r].data()), blocks[r].size());
  return texts;
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

}  // namespace tw
