// Accuracies of finished trainings, beside predictions of time.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tw {

/// Final validation top-1 of a sparsifier and of dense SGD with the same recipe and epochs.
struct Accuracy {
  std::string sparsifier{}, options{}, model{}, dataset{};
  int ranks = 0, batch_size = 0;  ///< ranks; images per rank
  double density = 0;
  int epochs = 0;
  std::string seeds{};  ///< `1;2`
  double top1 = 0, dense_top1 = 0;
  /// Percentage points below dense.
  double loss() const { return 100 * (dense_top1 - top1); }
};

/// Reads a table with the columns of configs/accuracy.csv. UserError names `source` and the line.
std::vector<Accuracy> parse_accuracies(std::string_view text, const std::string& source);

/// configs/accuracy.csv as it was when the program was built.
std::string_view built_in_accuracies();

/// The training of `sparsifier` at its default settings with this model and density that ran the
/// most epochs; null if there is none.
const Accuracy* find_accuracy(const std::vector<Accuracy>& table, std::string_view sparsifier,
                              std::string_view model, double density);

}  // namespace tw
