#include "apps/eval/confusion.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/io/csv.h"

namespace tw {

Confusion::Confusion(std::vector<std::string> names) : names_(std::move(names)) {
  check(names_.size() <= kMostClasses, "[eval] {} classes; expected at most {}", names_.size(),
        kMostClasses);
  counts_.resize(names_.size() * names_.size());
}

void Confusion::add(size_t label, std::span<const float> logits) {
  const auto prediction = static_cast<size_t>(std::ranges::max_element(logits) - logits.begin());
  const float own = logits[label];
  size_t above = 0;
  for (size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > own || (logits[i] == own && i < label)) ++above;
  ++counts_[label * names_.size() + prediction];
  ++images_;
  if (above < 1) ++top1_;
  if (above < 5) ++top5_;
}

std::vector<Confusion::Class> Confusion::classes() const {
  const size_t n = names_.size();
  std::vector<Class> all(n);
  for (size_t label = 0; label < n; ++label) {
    all[label].name = names_[label];
    all[label].correct = counts_[label * n + label];
    for (size_t other = 0; other < n; ++other) {
      all[label].images += counts_[label * n + other];
      all[label].predicted += counts_[other * n + label];
      const int64_t count = other == label ? 0 : counts_[label * n + other];
      if (count > 0 && count == all[label].mistakes) ++all[label].equally_mistaken;
      if (count <= all[label].mistakes) continue;
      all[label].mistaken = names_[other];
      all[label].mistakes = count;
      all[label].equally_mistaken = 0;
    }
  }
  return all;
}

std::string Confusion::matrix_csv() const {
  std::string text = "label";
  for (const std::string& name : names_) text += fmt::format(",{}", csv_cell(name));
  for (size_t i = 0; i < counts_.size(); ++i) {
    if (i % names_.size() == 0) text += fmt::format("\n{}", csv_cell(names_[i / names_.size()]));
    text += fmt::format(",{}", counts_[i]);
  }
  return text + "\n";
}

std::string Confusion::classes_csv() const {
  const auto cell = [](std::optional<double> value) {
    return value ? fmt::format("{:.6f}", *value) : "";
  };
  std::string text = "class,images,predicted,correct,precision,recall\n";
  for (const Class& one : classes())
    text += fmt::format("{},{},{},{},{},{}\n", csv_cell(one.name), one.images, one.predicted,
                        one.correct, cell(one.precision()), cell(one.recall()));
  return text;
}

}  // namespace tw
