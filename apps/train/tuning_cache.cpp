#include "apps/train/tuning_cache.h"

#include <nlohmann/json.hpp>

#include "apps/common/rank_utils.h"
#include "engine/core/error.h"
#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {
std::filesystem::path file_in(const std::filesystem::path& folder) {
  return folder / "tuning_cache.json";
}

std::string text_of(Context& ctx) { return nlohmann::json(ctx.tuning_cache()).dump(1) + "\n"; }

/// Replaces the tuning cache of ctx. Returns false when it does not change.
bool take(Context& ctx, const std::string& text, const std::string& from) {
  std::map<std::string, std::string> taken;
  const std::string source = "[tuning_cache] " + from;
  try {
    parse_json<nlohmann::json>(text, source).get_to(taken);
  } catch (const nlohmann::json::exception& error) {
    fail("{}: {:.200}", source, error.what());
  }
  if (taken == ctx.tuning_cache()) return false;
  ctx.tuning_cache() = std::move(taken);
  return true;
}

}  // namespace

void save_tuning_cache(Context& ctx, const std::filesystem::path& folder) {
  if (ctx.tuning_cache().empty()) return;
  write_atomically(file_in(folder), text_of(ctx));
}

bool load_tuning_cache(Context& ctx, Communicator& comm, const std::filesystem::path& folder) {
  const std::filesystem::path path = file_in(folder);
  std::string text;
  run_collectively(comm, [&] {
    if (comm.rank() == 0) text = read_text_if_any(path, kMostJson);
  });
  text = broadcast_text(comm, text);
  return !text.empty() && take(ctx, text, path.string());
}

void plan_consistently(Context& ctx, Communicator& comm, const std::function<void()>& plan) {
  if (comm.size() == 1 || ctx.device() == Device::cpu) return plan();
  const bool first = comm.rank() == 0;
  // autotuning may take longer than the timeout of a step
  const double patience = comm.timeout();
  comm.set_timeout(0);
  run_collectively(comm, [&] {
    if (first) plan();
  });
  const std::string found = broadcast_text(comm, text_of(ctx));
  comm.set_timeout(patience);
  if (first) return;
  take(ctx, found, "rank 0");
  plan();
}

}  // namespace tw
