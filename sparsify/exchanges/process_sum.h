// ProcessSum: sparse_sum() of entries that are the same on all ranks of a communicator. The ranks
// that are threads of one process upload them once.
#pragma once

#include "comm/communicator.h"
#include "sparsify/kernels/shared_sum.h"

namespace tw {

class ProcessSum {
 public:
  /// All ranks call it in the same order. To know the entries, a rank must have had a message of
  /// this exchange from every other rank, as SharedSum::run() expects.
  void operator()(Context& ctx, Communicator& comm, std::span<const SparseView> parts,
                  std::span<float> sum) {
    if (!shared_)
      shared_ = std::static_pointer_cast<SharedSum>(
          comm.share([&] { return SharedSum::create(ctx, comm.sharing_ranks()); }));
    shared_->run(ctx, comm.rank(), parts, sum);
  }

 private:
  std::shared_ptr<SharedSum> shared_;
};

}  // namespace tw
