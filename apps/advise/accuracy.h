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
  /// `4 ranks, 10 epochs, 1 seed`
  std::string training() const;
};

/// Reads a table with the columns of configs/accuracy.csv. UserError names `source` and the line of
/// a value that is no number, out of range or missing, or of an unknown sparsifier.
std::vector<Accuracy> parse_accuracies(std::string_view text, const std::string& source);

/// configs/accuracy.csv as it was when the program was built.
std::string_view built_in_accuracies();

/// What a training must have in common with a prediction. An empty data set and a density of 0
/// match any.
struct AccuracyKey {
  std::string_view sparsifier, options, model, dataset;
  double density = 0;
};
/// The training of this key that ran the most epochs; null if there is none.
const Accuracy* find_accuracy(const std::vector<Accuracy>& table, const AccuracyKey& key);

}  // namespace tw
