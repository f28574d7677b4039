#include "apps/train/skipped_images.h"

#include <sstream>

#include "apps/common/rank_utils.h"
#include "data/tally.h"
#include "data/wrappers.h"

namespace tw {

void SkippedImages::report(Communicator& comm, const DataSplit& data, Console& console) {
  std::string mine;
  if (data.skipped)
    for (const SkipLog::Entry& entry : data.skipped->take())
      mine += fmt::format("{}/{}\n", entry.class_name, entry.description);
  std::set<std::string> fresh;  // sorted: the first of a class does not depend on the threads
  for (const std::string& text : gather_texts(comm, mine)) {
    std::istringstream lines(text);
    // several ranks may skip the same image
    for (std::string line; std::getline(lines, line);)
      if (lines_.insert(line).second) fresh.insert(line);
  }
  if (fresh.empty()) return;
  Tally by_class;
  for (const std::string& line : fresh) {
    const size_t slash = line.find('/');  // the name of a class has none
    by_class.add(line.substr(0, slash), line.substr(slash + 1));
  }
  console.line("{}{} damaged images skipped so far", skipped_text(by_class), lines_.size());
}

}  // namespace tw
