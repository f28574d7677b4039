#include "apps/train/tables/position.h"

#include <nlohmann/json.hpp>

#include "engine/io/file.h"
#include "engine/io/json.h"

namespace tw {

namespace {

std::filesystem::path validated_file(const std::filesystem::path& checkpoint) {
  return checkpoint / "validated.json";
}

}  // namespace

Json Position::json() const {
  Json json = {{"step", step},           {"epoch", epoch},         {"batch", batch},
               {"best_top1", best_top1}, {"best_step", best_step}, {"totals", totals.json()},
               {"run", run.json()}};
  if (to_validate) json["to_validate"] = true;
  return json;
}

Position Position::from_json(const Json& json) {
  Position at;  // json.value() reads what older checkpoints lack
  at.step = integer_of(json.at("step"));
  at.epoch = integer_of(json.at("epoch"));
  at.batch = integer_of(json.at("batch"));
  at.best_top1 = json.value("best_top1", at.best_top1);
  at.best_step = integer_of(json.value("best_step", Json(at.best_step)));
  at.totals = StepRecord::from_json(json.at("totals"));
  at.run = StepRecord::from_json(json.at("run"));
  at.to_validate = json.value("to_validate", false);
  return at;
}

void write_validated(const std::filesystem::path& checkpoint, const Position& after) {
  write_atomically(validated_file(checkpoint), after.json().dump() + "\n");
}

std::string read_validated(const std::filesystem::path& checkpoint) {
  return read_text_if_any(validated_file(checkpoint), kMostJson);
}

Position after_validation(const Position& before, const std::string& text) {
  if (!before.to_validate) return before;
  try {
    const Position after = Position::from_json(parse_json_if_valid<Json>(text));
    const bool whole = after.epoch == before.epoch + 1 && after.batch == 0;
    const bool cut = after.epoch == before.epoch && after.batch == before.batch;
    return after.step == before.step && (whole || cut) ? after : before;
  } catch (const Json::exception&) {
    return before;
  }
}

}  // namespace tw
