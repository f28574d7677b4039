// Checkpoints: everything a run needs to go on as if it had never stopped.
//
// checkpoints/step-00000123/
//   model.safetensors      weights and batch-norm statistics, torchvision names; metadata says
//                          what run it is and where it stood
//   momentum.safetensors   the flat momentum vector
//   rank-0.safetensors ... residual and own batch-norm statistics of each rank
#pragma once

#include <filesystem>

#include "apps/train/config.h"
#include "apps/train/records.h"
#include "comm/communicator.h"
#include "models/model.h"
#include "sparsify/sync_sgd.h"

namespace tw {

/// Where a run stands: `batch` batches of epoch `epoch` are done.
struct Position {
  int64_t step = 0, epoch = 0, batch = 0;
  EpochTotals totals;  ///< of the batches done in this epoch
  EpochTotals run;     ///< of all batches done
};

/// Writes a checkpoint below `folder`: into a temporary folder, renamed when every rank is done.
/// `statistics`: the batch-norm statistics for model.safetensors (averaged or rank 0's own).
/// Keeps the newest two. Collective; Fault when the disk is full (older ones stay).
void save_checkpoint(Context& ctx, Communicator& comm, const std::filesystem::path& folder,
                     const TrainConfig& config, const Position& position, Model& model,
                     SyncSgd& sgd, std::span<const float> statistics);

/// Removes checkpoints behind `step`, and what killed runs left half written: a run that goes on
/// from an older checkpoint goes another way from there.
void remove_newer_checkpoints(const std::filesystem::path& folder, int64_t step);

/// What a resumed run should tell its user.
struct Resumed {
  Position position;
  std::string notice;  ///< empty when everything matched
};

/// Loads a checkpoint; UserError says what differs (model, data set, seed, batch size) or which
/// file is damaged. With another number of ranks the residuals are summed and dealt out again.
Resumed load_checkpoint(Communicator& comm, const std::filesystem::path& checkpoint,
                        const TrainConfig& config, Model& model, SyncSgd& sgd);

}  // namespace tw
