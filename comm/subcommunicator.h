// Subcommunicator: some ranks of a communicator as a communicator of their own.
#pragma once

#include <vector>

#include "comm/communicator_decorator.h"

namespace tw {

class Subcommunicator : public CommunicatorDecorator {
 public:
  /// `members`: ranks of the parent without repetition, this rank among them, in the same order on
  /// all of them; member i is rank i here. Messages go over the parent and are counted there, too.
  /// Collective among the members only. std::logic_error when this rank is not a member.
  Subcommunicator(Communicator& parent, std::vector<int> members);

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(members_.size()); }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override;

 private:
  std::vector<int> members_;
  int rank_;
};

/// Nodes of `per_node` consecutive ranks each; the last one may be smaller.
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
