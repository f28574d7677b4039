// Comparison: all predictions over all rounds of measurement, and the advice that follows.
#pragma once

#include <optional>

#include "apps/advise/accuracy.h"
#include "apps/advise/interval.h"
#include "apps/advise/prediction.h"

namespace tw {

/// Accuracies of each sparsifier with the model in question.
struct AccuracyRules {
  std::vector<Accuracy> table{};
  std::string model{};
  double density = 0;
  double max_loss = 2;  ///< points of top-1 below dense; above, a sparsifier is not recommended
};

class Comparison {
 public:
  /// Neither may be empty.
  Comparison(std::vector<Prediction> all, Rounds rounds, AccuracyRules accuracy);

  const std::vector<Prediction>& all() const { return all_; }
  const Rounds& rounds() const { return rounds_; }
  /// The same with another bandwidth of the link, in bit/s.
  Comparison at(double bits) const;

  Interval seconds(const Prediction& of, int ranks) const;
  Interval exchange_seconds(const Prediction& of, int ranks) const;
  /// Iteration of one rank with dense SGD / predicted iteration: 1 is perfect scaling.
  Interval efficiency(const Prediction& of, int ranks) const;
  /// Seconds of best_dense / seconds of this one.
  Interval speedup(const Prediction& of, int ranks) const;
  /// The bandwidth in bit/s above which the best dense exchange is faster: 0 when it always is,
  /// infinity when it never is.
  Interval break_even(const Prediction& sparse, int ranks) const;
  /// Null if not measured, or for dense SGD.
  const Accuracy* accuracy(const Prediction& of) const;

  /// The dense exchange with the least median time: with or without overlap, f32 or bf16.
  const Prediction& best_dense(int ranks) const;
  /// The sparse exchange to recommend: the one with the least median time, or `topk` if it takes
  /// at most 2 % longer. Not among them: `randk`, which does not reach the accuracy of the others;
  /// `exact`, a reference; `hierarchical`, whose cost depends on which ranks share a node;
  /// `powersgd` and `scalecom` where their accuracy is not measured; and sparsifiers with a larger
  /// loss of accuracy than the rules allow. Null if none is left.
  const Prediction* best_sparse(int ranks) const;

  struct Verdict {
    const Prediction* use;  ///< best_sparse or best_dense
    std::string sentence;
  };
  /// Recommends best_sparse if its speed-up is above 1.02 with the whole interval, else best_dense.
  Verdict verdict(int ranks) const;

 private:
  template <class Function>
  Interval over_rounds(const Function& function) const;
  bool loses_too_much(const Prediction& of) const;
  bool may_be_recommended(const Prediction& of) const;
  std::string losers(const Prediction& use, int ranks) const;

  std::vector<Prediction> all_;
  Rounds rounds_;
  AccuracyRules accuracy_;
};

/// `26 Mbit/s`; of an interval: `4.2 (3.9-4.8) Gbit/s`.
std::string bandwidth_text(const Interval& bits);

}  // namespace tw
