// Comparison: all predictions over all rounds of measurement, and the advice that follows.
#pragma once

#include "apps/advise/accuracy.h"
#include "apps/advise/interval.h"
#include "apps/advise/prediction.h"

namespace tw {

/// A smaller speed-up is not worth a change.
inline constexpr double kNoticeable = 1.02;

/// Which accuracies belong to the predictions.
struct AccuracyRules {
  std::vector<Accuracy> table{};
  std::string model{}, dataset{};
  double density = 0;
  int64_t batch_size = 0;  ///< images of a step and rank
  double max_loss = 2;     ///< points of top-1 below dense; above, a sparsifier is not recommended
};

/// The bandwidths in bit/s at which an exchange is more than 2 % faster than the best dense one, as
/// a verdict needs it: `above` to `below`, its break-even. 0 and infinity: without limit; both 0:
/// none.
struct Window {
  double above = 0;
  Interval below{};
};

class Comparison {
 public:
  /// Neither may be empty. `flags`: those that all recommended command lines end with.
  Comparison(std::vector<Prediction> all, Rounds rounds, AccuracyRules accuracy,
             std::string flags = "");

  const std::vector<Prediction>& all() const { return all_; }
  const Rounds& rounds() const { return rounds_; }
  /// The same with another bandwidth of the link, in bit/s.
  Comparison at(double bits) const;

  Interval seconds(const Prediction& of, int ranks) const;
  Interval exchange_seconds(const Prediction& of, int ranks) const;
  /// Iteration of one rank with dense SGD / predicted iteration: 1 is perfect scaling.
  Interval efficiency(const Prediction& of, int ranks) const;
  /// Seconds of best_dense / seconds of this one, of each round: what disturbs a whole round
  /// cancels.
  Interval speedup(const Prediction& of, int ranks) const;
  /// The bandwidths around that of the link at which it is more than 2 % faster than the best dense
  /// exchange; if it is not at the link's, the nearest such bandwidths below. Medians of the
  /// limits, and the interval of `below`.
  Window window(const Prediction& of, int ranks) const;
  /// Null if not measured, or for synchronous dense SGD.
  const Accuracy* accuracy(const Prediction& of) const;
  /// The training with this exchange, overlap apart, that reaches a validation top-1 in the fewest
  /// epochs; null if none does.
  const Accuracy* training_to(const Prediction& of, double top1) const;
  /// Seconds of the iterations of so many epochs of a training, with as many images an epoch.
  Interval seconds_of(const Prediction& of, int ranks, const Accuracy& training,
                      double epochs) const;
  /// Images of a step.
  int64_t images(int ranks) const { return ranks * accuracy_.batch_size; }

  /// Of the predictions that differ from one of all() in their collective only, the fastest.
  const Prediction& fastest_of_kind(const Prediction& of, int ranks) const;
  /// The exchange of synchronous dense SGD that is fastest in the median round: with or without
  /// overlap, f32 or bf16. Plain `dense` among equals.
  const Prediction& best_dense(int ranks) const;
  /// Of the exchanges of synchronous dense SGD that are not clearly slower than best_dense, that
  /// whose command has the fewest options: f32 before bf16, then another collective, then overlap.
  /// Not clearly: at most 2 %, or the interval of its speed-up reaches 1.
  const Prediction& plainest_dense(int ranks) const;
  /// The sparse exchange, or the one with local steps, to recommend: the fastest, or one of
  /// Advice::first if it takes at most 2 % longer. Such a one needs no accuracy of this model, but
  /// with local steps or settings that change its values a good one of another model. Others need
  /// one of this model within the allowed loss. Never: Advice::never. Null if none is left.
  const Prediction* best_alternative(int ranks) const;

  struct Verdict {
    Prediction use;     ///< best_alternative or plainest_dense
    std::string flags;  ///< of train
    std::string sentence;
  };
  /// Recommends best_alternative if its speed-up over best_dense is above 1.02 with the whole
  /// interval, else plainest_dense.
  Verdict verdict(int ranks) const;

 private:
  template <class Function>
  Interval over_rounds(const Function& function) const;
  /// Median over rounds of seconds of `other` / seconds of `of`.
  double ratio(const Prediction& of, const Prediction& other, int ranks) const;
  template <class Allowed>
  const Prediction* fastest(int ranks, const Allowed& allowed) const;
  bool may_be_recommended(const Prediction& of) const;
  AccuracyKey key_of(const Prediction& of) const;
  /// The largest loss among the models and data sets with a training like this; or null.
  const Accuracy* of_other_models(const Prediction& of) const;
  std::string faster_ones(const Prediction& use, int ranks) const;

  std::vector<Prediction> all_;
  Rounds rounds_;
  AccuracyRules accuracy_;
  std::string flags_;
};

/// `26 Mbit/s`; of an interval: `4.2 (3.9-4.8) Gbit/s`.
std::string bandwidth_text(const Interval& bits);

}  // namespace tw
