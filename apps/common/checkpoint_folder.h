// Finds the checkpoints of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "engine/io/safetensors.h"

namespace tw {

/// The step in the name of a checkpoint, as 10 in `step-00000010`; nothing for another name.
std::optional<int64_t> step_in(const std::filesystem::path& checkpoint,
                               std::string_view kind = "step-");

/// The newest checkpoint below `folder` (a run or its checkpoints folder, or a checkpoint itself),
/// which may be damaged.
std::optional<std::filesystem::path> latest_checkpoint(const std::filesystem::path& folder);

/// The newest checkpoint of the run in `folder` that is whole; if none is, the newest one.
std::optional<std::filesystem::path> newest_whole_checkpoint(const std::filesystem::path& folder);

/// UserError with [area] unless `path` exists; it names runs/PATH or the nearest name beside it.
void check_exists(const std::filesystem::path& path, const char* area);

/// The file of weights that `path` names: itself, or that of the newest checkpoint below a folder.
/// UserError, which begins with [area], when there is none.
std::filesystem::path weights_file(const std::filesystem::path& path, const char* area);

/// The file of weights that weights_file() has found. UserError when it is damaged, which names an
/// older checkpoint as older_if_damaged() does.
SafetensorsReader read_weights_file(const std::filesystem::path& file, std::string_view taker);

/// For the error of a checkpoint that is damaged: names the newest older one of the run that is
/// whole, and that `taker`, an option or program, uses it. Empty if there is none, or if this one
/// is not damaged.
std::string older_if_damaged(const std::filesystem::path& checkpoint, std::string_view taker);

}  // namespace tw
