#include "apps/advise/accuracy.h"

#include <algorithm>
#include <charconv>

#include "engine/core/error.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

constexpr std::string_view kHead =
    "sparsifier,options,model,dataset,ranks,batch_size,density,epochs,seeds,top1,dense_top1,commit";

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(by, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace

std::string Accuracy::training() const {
  const auto count = std::ranges::count(seeds, ';') + 1;
  return fmt::format("{} ranks, {} epochs, {} seed{}", ranks, epochs, count, count == 1 ? "" : "s");
}

std::vector<Accuracy> parse_accuracies(std::string_view text, const std::string& source) {
  std::vector<Accuracy> table;
  int number = 0;
  for (const std::string_view line : split(text, '\n')) {
    if (++number == 1) {
      check(line == kHead, "[advise] {}: expected the columns {}", source, kHead);
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string_view> cells = split(line, ',');
    check(cells.size() == 12, "[advise] {}, line {}: {} cells; expected 12", source, number,
          cells.size());
    const auto read = [&](size_t cell, auto& value) {
      const char* end = cells[cell].data() + cells[cell].size();
      const auto [rest, error] = std::from_chars(cells[cell].data(), end, value);
      check(error == std::errc{} && rest == end, "[advise] {}, line {}: {} is no number", source,
            number, cells[cell]);
    };
    Accuracy& row = table.emplace_back();
    row.sparsifier = cells[0];
    row.options = cells[1];
    row.model = cells[2];
    row.dataset = cells[3];
    read(4, row.ranks);
    read(5, row.batch_size);
    read(6, row.density);
    read(7, row.epochs);
    row.seeds = cells[8];
    read(9, row.top1);
    read(10, row.dense_top1);
    const auto share = [](double top1) { return top1 > 0 && top1 <= 1; };  // not NaN
    check(share(row.top1) && share(row.dense_top1) && row.density > 0 && row.density <= 1 &&
              row.epochs > 0 && row.ranks > 0 && row.batch_size > 0,
          "[advise] {}, line {}: a value is out of range", source, number);
    check(!row.seeds.empty() && !cells[11].empty(),
          "[advise] {}, line {}: expected seeds and a commit", source, number);
    check(sparsifiers().entries().contains(row.sparsifier),
          "[advise] {}, line {}: no sparsifier {}", source, number, row.sparsifier);
  }
  return table;
}

const Accuracy* find_accuracy(const std::vector<Accuracy>& table, const AccuracyKey& key) {
  const Accuracy* found = nullptr;
  for (const Accuracy& row : table)
    if (row.sparsifier == key.sparsifier && row.options == key.options && row.model == key.model &&
        (key.dataset.empty() || row.dataset == key.dataset) &&
        (key.density == 0 || row.density == key.density) && (!found || row.epochs > found->epochs))
      found = &row;
  return found;
}

}  // namespace tw
