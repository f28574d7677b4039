// Position: where a run stands, as its checkpoints keep it.
#pragma once

#include <filesystem>

#include "apps/train/tables/records.h"

namespace tw {

/// `batch` batches of epoch `epoch` are done.
struct Position {
  int64_t step = 0, epoch = 0, batch = 0;
  StepRecord totals;      ///< of the batches done in this epoch
  StepRecord run;         ///< of all batches done
  double best_top1 = -1;  ///< the highest validation accuracy so far
  int64_t best_step = 0;  ///< where it was reached; 0: no validation yet
  /// The epoch is trained, up to its end or to --max-steps; its validation and its row are left.
  bool to_validate = false;

  Json json() const;
  /// Throws nlohmann's exceptions on damaged JSON.
  static Position from_json(const Json& json);
};

/// Notes in a checkpoint that was written before the validation of its epoch where the run stands
/// after it, in validated.json. Fault when the disk is full.
void write_validated(const std::filesystem::path& checkpoint, const Position& after);

/// The text of validated.json; empty when there is none.
std::string read_validated(const std::filesystem::path& checkpoint);

/// `before`, moved to where the run stands by the text of validated.json. Unchanged if the text is
/// empty or damaged: the run then validates again.
Position after_validation(const Position& before, const std::string& text);

}  // namespace tw
