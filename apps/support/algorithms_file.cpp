#include "apps/support/algorithms_file.h"

#include <nlohmann/json.hpp>

#include "engine/error.h"
#include "engine/file.h"

namespace tw {

namespace {
std::filesystem::path file_in(const std::filesystem::path& folder) {
  return folder / "algorithms.json";
}
}  // namespace

void save_algorithms(Context& ctx, const std::filesystem::path& folder) {
  if (ctx.algorithms().empty()) return;
  write_atomically(file_in(folder), nlohmann::json(ctx.algorithms()).dump(1) + "\n");
}

bool recall_algorithms(Context& ctx, const std::filesystem::path& folder) {
  const std::filesystem::path path = file_in(folder);
  if (!std::filesystem::exists(path)) return false;
  const std::vector<std::byte> bytes = read_file(path);
  const char* const text = reinterpret_cast<const char*>(bytes.data());
  std::map<std::string, std::string> recalled;
  try {
    nlohmann::json::parse(text, text + bytes.size()).get_to(recalled);
  } catch (const nlohmann::json::exception& error) {
    fail("[algorithms] {}: {}", path.string(), error.what());
  }
  if (recalled == ctx.algorithms()) return false;
  ctx.algorithms() = recalled;
  return true;
}

}  // namespace tw
