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

/// The division of ranks into nodes. The leader of a node is its lowest rank.
class NodePlan {
 public:
  /// Nodes of `per_node` consecutive ranks each; the last one may be smaller.
  NodePlan(int ranks, int per_node);
  /// The ranks of each host, in any order and number, are a node.
  explicit NodePlan(const std::vector<HostId>& hosts);

  int nodes() const { return static_cast<int>(leaders().size()); }
  int leader(int rank) const { return leader_[rank]; }
  /// The ranks of a rank's node, its leader first.
  std::vector<int> node_of(int rank) const;
  /// The leaders of all nodes.
  std::vector<int> leaders() const;

 private:
  std::vector<int> leader_;  // of each rank
};

}  // namespace tw
