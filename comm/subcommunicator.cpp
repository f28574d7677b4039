#include "comm/subcommunicator.h"

#include <algorithm>

namespace tw {

Subcommunicator::Subcommunicator(Communicator& parent, std::vector<int> members)
    : CommunicatorDecorator(parent), members_(std::move(members)) {
  const auto self = std::ranges::find(members_, parent.rank());
  check<std::logic_error>(self != members_.end(), "[subcommunicator] rank {} is not a member",
                          parent.rank());
  rank_ = static_cast<int>(self - members_.begin());
}

size_t Subcommunicator::do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) {
  const auto in_parent = [&](int rank) { return rank < 0 ? -1 : members_[rank]; };
  return inner_.exchange(ctx, in_parent(to), out, in_parent(from), in);
}

NodePlan::NodePlan(int ranks, int per_node) {
  for (int rank = 0; rank < ranks; ++rank) leader_.push_back(rank - rank % per_node);
}

NodePlan::NodePlan(const std::vector<HostId>& hosts) {
  for (const HostId& host : hosts)
    leader_.push_back(static_cast<int>(std::ranges::find(hosts, host) - hosts.begin()));
}

std::vector<int> NodePlan::node_of(int rank) const {
  std::vector<int> members;
  for (int r = leader(rank); r < std::ssize(leader_); ++r)
    if (leader(r) == leader(rank)) members.push_back(r);
  return members;
}

std::vector<int> NodePlan::leaders() const {
  std::vector<int> members;
  for (int r = 0; r < std::ssize(leader_); ++r)
    if (leader(r) == r) members.push_back(r);
  return members;
}

}  // namespace tw
