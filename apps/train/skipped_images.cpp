#include "apps/train/skipped_images.h"

#include <sstream>

#include "apps/common/rank_utils.h"
#include "data/wrappers.h"

namespace tw {

void SkippedImages::report(Communicator& comm, const DataSplit& data, Console& console) {
  std::string mine;
  if (data.skipped)
    for (const std::string& line : data.skipped->take()) mine += fmt::format("skipped {}\n", line);
  std::string fresh;
  for (const std::string& text : gather_texts(comm, mine)) {
    std::istringstream lines(text);
    // several ranks may skip the same image
    for (std::string line; std::getline(lines, line);)
      if (lines_.insert(line).second) fresh += line + '\n';
  }
  if (!fresh.empty()) console.line("{}{} damaged images skipped so far", fresh, lines_.size());
}

}  // namespace tw
