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
  int64_t images = 0;           ///< of an epoch
  std::vector<double> curve{};  ///< top-1 after each epoch; empty: not recorded
  /// Percentage points below dense.
  double loss() const { return 100 * (dense_top1 - top1); }
  /// `cifar10, 4 ranks, 10 epochs, 1 seed`
  std::string training() const;
  /// Epochs until the top-1, on the line between the last epoch below it and the first that is not;
  /// infinity if none reaches it.
  double epochs_to(double wanted) const;
};

/// Reads a table with the columns of configs/accuracy.csv, with or without the last two (images and
/// curve). UserError names `source` and the line of a value that is no number, out of range or
/// missing, or of an unknown sparsifier.
std::vector<Accuracy> parse_accuracies(std::string_view text, const std::string& source);

/// configs/accuracy.csv as it was when the program was built.
std::string_view built_in_accuracies();

/// The words of options that change what is learned: not `--set`, and no other encoding of indices
/// or order of a sum.
std::vector<std::string> changing(std::string_view options);

/// What a training must have in common with a prediction, such words of the options in any order.
/// An empty data set and a density of 0 match any.
struct AccuracyKey {
  std::string sparsifier, options, model, dataset;
  double density = 0;
};
/// The training of this key that ran the most epochs; null if there is none.
const Accuracy* find_accuracy(const std::vector<Accuracy>& table, const AccuracyKey& key);
/// That which reaches the top-1 in the fewest epochs; null if none does.
const Accuracy* find_training_to(const std::vector<Accuracy>& table, const AccuracyKey& key,
                                 double top1);

}  // namespace tw
