// Predicts the time of an iteration for every sparsifier and number of ranks by the cost model.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "apps/advise/costs.h"
#include "models/model.h"
#include "sparsify/sgd_plan.h"

namespace tw {

/// One exchange.
struct Load {
  /// The parameters whose gradients it waits for, in the order of the arena: first, and one behind
  /// the last.
  size_t first_parameter = 0, end_parameter = 0;
  /// What communication with the other ranks, or nodes, adds to the exchange.
  std::function<double(const LinkCost&, int ranks)> seconds{};
};

/// When its gradients are ready, and seconds of selection and exchange at a density.
struct OverlappedExchange {
  double ready = 0;
  std::function<double(double)> seconds{};
};

/// When the last exchange ends, one at a time. `raise` first raises each density to the largest of
/// three digits with which its exchange ends before the gradients of the next one are ready (the
/// last: before backward ends), if there is one.
double end_of(const std::vector<OverlappedExchange>& exchanges, double backward,
              std::vector<double>& densities, bool raise = false);

/// A way to exchange gradients: a sparsifier, with the dense collective that it uses, if any.
struct Prediction {
  std::string sparsifier{}, collective{};
  ValueFormat values = ValueFormat::f32;  ///< of the messages of `collective`
  bool dense = false;
  bool selects = false;  ///< a selector chooses entries; else the density has no effect
  std::map<std::string, std::string> settings{};  ///< see changed_settings()
  bool overlap = false;     ///< exchanges run during backward (--scope layer --overlap)
  int64_t local_steps = 1;  ///< iterations that share a selection and an exchange (LocalSgd)
  std::vector<Load> loads{};
  size_t entries = 0, packed = 0;     ///< as in SgdPlan: selected, and of small tensors
  Volume volume = Volume::exactly_k;  ///< how many entries it sends when asked for k

  /// Dense SGD that exchanges in every iteration: the rival of the others.
  bool synchronous_dense() const { return dense && local_steps == 1; }
  /// The collective as tables show it: `ring`, `ring bf16 overlap`.
  std::string collective_text() const { return collective + how(); }
  /// `topk`, `dense ring bf16 overlap`, `topk H=4` with local steps.
  std::string label() const;
  /// The same without the collective, as tables show it: `dense bf16 overlap`.
  std::string kind() const;
  /// The flags of `train` that choose it.
  std::string flags() const;
  /// Seconds that exchanges add to an iteration; with overlap, those after backward; with local
  /// steps, an iteration's share.
  double exchange_seconds(const Costs& costs, int ranks) const;
  /// Seconds of an iteration: compute, selection and update, exchange_seconds. With local steps:
  /// compute, the update of dense SGD, and a share of the rest.
  double seconds(const Costs& costs, int ranks) const;

 private:
  std::string how() const;
};

/// Of the settings that this optimizer reads, those that differ from their defaults: `train`
/// refuses others.
std::map<std::string, std::string> changed_settings(const SgdConfig& config, Settings settings,
                                                    const ParameterArena& arena);

/// The dense collectives that sums may use: the one that the settings name if they were set, else
/// all with a model. UserError if there is no model of a collective that the settings name.
std::vector<std::string> allowed_sums(const Settings& settings);

/// A prediction for every registered sparsifier; for one that sums densely (dense SGD, factors,
/// values, small tensors), one for each of allowed_sums; for dense SGD
/// one with messages in f32 and one in bf16, and with `overlap` also those that run during
/// backward, which need ComputeProfile::ready. `flat` > 0: a vector of that many elements in
/// place of the model's, without overlap. `local_steps` > 1 excludes overlap and sparsifiers whose
/// rank 0 updates for all. UserError: see allowed_sums.
std::vector<Prediction> predictions(const ParameterArena& arena, size_t flat, double density,
                                    bool overlap, const Settings& settings,
                                    int64_t local_steps = 1);

/// Which sparsifiers may send more or fewer entries than their predictions assume: a line for all
/// with the same number.
std::vector<std::string> volume_notes(const std::vector<Prediction>& all);

}  // namespace tw
