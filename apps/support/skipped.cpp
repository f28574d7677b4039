#include "apps/support/skipped.h"

#include <algorithm>

#include "apps/support/together.h"

namespace tw {

void SkippedImages::report(Context& ctx, Communicator& comm, const DataSplit& data,
                           Console& console) {
  std::string mine;
  for (const Dataset* half : {data.train.get(), data.val.get()})
    for (const std::string& line : half->take_complaints())
      mine += fmt::format("skipped {}\n", line);
  std::string all;
  for (const std::string& text : gather_texts(ctx, comm, mine)) all += text;
  if (all.empty()) return;
  count_ += std::ranges::count(all, '\n');
  console.line("{}{} damaged images skipped so far", all, count_);
}

}  // namespace tw
