#include "apps/advise/accuracy.h"

#include <algorithm>
#include <limits>

#include "apps/common/console.h"
#include "engine/core/error.h"
#include "engine/core/text.h"
#include "sparsify/sparsifier.h"

namespace tw {

namespace {

constexpr std::string_view kHead =
    "sparsifier,options,model,dataset,ranks,batch_size,density,epochs,seeds,top1,dense_top1,commit";
constexpr std::string_view kCurves = ",images,curve";  // not in tables of older versions

bool fits(const Accuracy& row, const AccuracyKey& key) {
  return row.sparsifier == key.sparsifier && row.model == key.model &&
         std::ranges::is_permutation(changing(row.options), changing(key.options)) &&
         (key.dataset.empty() || row.dataset == key.dataset) &&
         (key.density == 0 || row.density == key.density);
}

}  // namespace

std::vector<std::string> changing(std::string_view options) {
  std::vector<std::string> words = split(options, ' ');
  std::erase_if(words, [](std::string_view word) {
    const std::string_view key = word.substr(0, word.find('='));
    return word.empty() || word == "--set" || key.ends_with(".indices") ||
           key.ends_with(".collective");
  });
  return words;
}

double Accuracy::epochs_to(double wanted) const {
  const auto reached = std::ranges::find_if(curve, [&](double value) { return value >= wanted; });
  if (reached == curve.end()) return std::numeric_limits<double>::infinity();
  const auto epoch = static_cast<double>(reached - curve.begin() + 1);
  if (reached == curve.begin()) return epoch;
  return epoch - (*reached - wanted) / (*reached - *(reached - 1));
}

std::string Accuracy::training() const {
  const auto count = std::ranges::count(seeds, ';') + 1;
  return fmt::format("{}, {} ranks, {} epochs, {}", dataset, ranks, epochs, counted(count, "seed"));
}

std::vector<Accuracy> parse_accuracies(std::string_view text, const std::string& source) {
  std::vector<Accuracy> table;
  int number = 0;
  bool curves = false;
  for (const std::string& line : split(std::string(text) + "\n", '\n')) {
    if (++number == 1) {
      curves = line.size() > kHead.size();
      check(line.starts_with(kHead) && (!curves || line.substr(kHead.size()) == kCurves),
            "[advise] {}: expected the columns {}{}", source, kHead, kCurves);
      continue;
    }
    if (line.empty()) continue;
    const std::vector<std::string> cells = split(line + ",", ',');  // the last may be empty
    const size_t expected = curves ? 14 : 12;
    check(cells.size() == expected, "[advise] {}, line {}: {} cells; expected {}", source, number,
          cells.size(), expected);
    const auto read_text = [&](const std::string& word, auto& value) {
      const auto found = number_in<std::remove_reference_t<decltype(value)>>(word);
      check(found.has_value(), "[advise] {}, line {}: {} is no number", source, number, word);
      value = *found;
    };
    const auto read = [&](size_t cell, auto& value) { read_text(cells[cell], value); };
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
    if (curves && !cells[13].empty()) {
      read(12, row.images);
      for (const std::string& top1 : split(cells[13] + ";", ';'))
        read_text(top1, row.curve.emplace_back());
      check(row.images > 0 && std::ssize(row.curve) == row.epochs,
            "[advise] {}, line {}: expected images and a top-1 for each of {} epochs", source,
            number, row.epochs);
    }
    const auto share = [](double top1) { return top1 >= 0 && top1 <= 1; };  // not NaN
    check(std::ranges::all_of(row.curve, share) && share(row.top1) && row.top1 > 0 &&
              share(row.dense_top1) && row.dense_top1 > 0 && row.density > 0 && row.density <= 1 &&
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
    if (fits(row, key) && (!found || row.epochs > found->epochs)) found = &row;
  return found;
}

const Accuracy* find_training_to(const std::vector<Accuracy>& table, const AccuracyKey& key,
                                 double top1) {
  const Accuracy* found = nullptr;
  double fewest = std::numeric_limits<double>::infinity();
  for (const Accuracy& row : table)
    if (fits(row, key) && row.epochs_to(top1) < fewest) {
      found = &row;
      fewest = row.epochs_to(top1);
    }
  return found;
}

}  // namespace tw
