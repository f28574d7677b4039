// Subcommunicator: some ranks of a communicator as a communicator of their own.
#pragma once

#include <vector>

#include "comm/communicator.h"

namespace tw {

class Subcommunicator : public Communicator {
 public:
  /// `members`: ranks of the parent, each once, this one among them, in the same order on all of
  /// them; member i is rank i of the group. The parent outlives the group, sends what it sends, and
  /// counts it too. Collective among the members only.
  Subcommunicator(Communicator& parent, std::vector<int> members);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }
  const char* transport() const override { return parent_.transport(); }
  double now() const override { return parent_.now(); }
  void abort(const char* reason, int code) override { parent_.abort(reason, code); }
  void check_peers() const override { parent_.check_peers(); }
  int gpu() const override { return parent_.gpu(); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  Communicator& parent_;
  std::vector<int> members_;
  int rank_;
};

/// Nodes of `per_node` neighbouring ranks each; the last one may be smaller.
struct NodePlan {
  int ranks, per_node;

  int nodes() const { return (ranks + per_node - 1) / per_node; }
  int leader(int rank) const { return rank - rank % per_node; }
  /// The ranks of a rank's node, its leader first.
  std::vector<int> node_of(int rank) const;
  /// The leaders of all nodes.
  std::vector<int> leaders() const;
};

}  // namespace tw
