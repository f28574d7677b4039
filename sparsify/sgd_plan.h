// SgdPlan: what an optimizer does in a step with an exchange, known before its memory is allocated:
// its parts, the exchanges and their buckets, entries, bytes, seconds and memory.
#pragma once

#include "sparsify/buckets.h"

namespace tw {

struct SgdPlan {
  /// UserError as resolve_sparsifier(). `machines`: as in ExchangePlan.
  SgdPlan(const ParameterArena& arena, const SgdConfig& config, const Settings& settings,
          const std::vector<HostId>& machines = {});

  Sparsifier sparsifier;
  std::vector<Bucket> buckets;    ///< in the order of their exchanges
  size_t slices = 0;              ///< selections of all buckets
  std::vector<Segment> packed{};  ///< of all packed buckets: small tensors
  /// Bytes of momentum, residual and exchange buffers on one rank; with local steps also of the
  /// anchor and of the momentum of these steps.
  size_t optimizer_bytes = 0;

  /// How many entries a rank sends at this density when it is asked for k.
  Volume volume(double density) const { return density < 1 ? volume_ : Volume::exactly_k; }
  size_t packed_elements() const;
  /// Entries that a rank selects. Without a selector, the elements that it sums with others: d, or
  /// those of the factors of the gradient.
  size_t entries(double density) const;
  /// Bytes that all ranks together send in one step with an exchange, if every rank that selects
  /// finds the k entries it is asked for. A selector may send fewer or more; see Volume.
  uint64_t bytes_sent(int ranks, double density) const;
  /// As Exchange::dense_exchanges().
  uint64_t dense_exchanges() const;
  /// Seconds of the exchanges of such a step. `own`: the link of ranks of one node.
  double seconds(const LinkCost& link, const LinkCost& own, int ranks, double density) const;

 private:
  Volume volume_ = Volume::exactly_k;
};

/// Reads the settings that the optimizer of `config` will read, without its memory; for
/// Settings::unread().
void read_settings(Context& ctx, const SgdConfig& config, const Settings& settings,
                   const ParameterArena& arena);

}  // namespace tw
