// Checkpoints: the whole state of a run. A run resumed on as many ranks computes the same bits as
// one that never stopped; on a GPU this requires --deterministic.
//
// checkpoints/step-00000123/
//   model.safetensors      weights and batch-norm statistics, torchvision names; the metadata has
//                          configuration, position and sums of the run
//   validated.json         position after the validation, if the checkpoint was written before it
//   momentum.safetensors   the flat momentum vector, and the anchor of local steps
//   rank-0.safetensors ... residual, local momentum, batch-norm statistics, states of exchanges and
//                          selector of a rank; with local steps its parameters and its momentum
#pragma once

#include <filesystem>

#include "apps/train/config.h"
#include "apps/train/rank_files.h"
#include "apps/train/tables/position.h"
#include "comm/communicator.h"
#include "models/model.h"
#include "sparsify/optimizer.h"

namespace tw {

/// Writes folder/step-N, first into a temporary folder that is renamed when every rank is done;
/// removes all but the newest --keep-checkpoints, unless the epoch is yet to be validated.
/// `statistics`: batch-norm statistics for model.safetensors (mean of the ranks, or rank 0's).
/// `folder` is one of rank 0; `files` says how the others write there. Collective. Fault when the
/// disk is full; older checkpoints stay.
void save_checkpoint(Communicator& comm, const std::filesystem::path& folder,
                     const TrainConfig& config, const Position& position, Model& model,
                     Optimizer& optimizer, std::span<const float> statistics,
                     const RankFiles& files = {});

/// Replaces the batch-norm statistics in the model.safetensors of a checkpoint of `model`. For rank
/// 0. Fault when the disk is full; the file then stays.
void replace_statistics(const std::filesystem::path& checkpoint, Model& model,
                        std::span<const float> statistics);

/// Where a resumed run starts, which of its options changed, and what became of its state.
struct Resumed {
  Position position;
  std::string notice;  ///< empty when none did
  std::string note;    ///< that of check_classes()
};

/// What load_checkpoint() would say of a checkpoint on `ranks` ranks, without what follows from its
/// tensors.
/// UserError on a damaged description, and on options with which it cannot be resumed.
Resumed describe_checkpoint(const std::filesystem::path& checkpoint, const TrainConfig& config,
                            int ranks);

/// Restores model and optimizer from a checkpoint. On as many ranks, each rank takes what it saved.
/// On another number of ranks, or where ranks or tensors are not selected from any more, every rank
/// takes the mean of what all ranks owed, which an update would have applied; the position is
/// converted to the batches of this run. States of other parts start anew. The notice says so.
/// UserError on a damaged file, on another model, data set, seed, validation split or classes, when
/// only one of checkpoint and run keeps residuals, and, for a checkpoint between two exchanges, on
/// another number of ranks, for validation only or with other frozen tensors. Collective.
Resumed load_checkpoint(Communicator& comm, const std::filesystem::path& checkpoint,
                        const TrainConfig& config, Model& model, Optimizer& optimizer,
                        const RankFiles& files = {});

}  // namespace tw
