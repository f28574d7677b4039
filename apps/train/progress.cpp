#include "apps/train/progress.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "apps/common/console.h"

namespace tw {

void Progress::Recent::add(double value, double times) {
  const double kept = std::pow(0.95, times);
  weight = kept * weight + times;
  sum = kept * sum + times * value;
}

void Progress::add(const StepRecord& step) {
  loss_.add(step.loss);
  top1_.add(static_cast<double>(step.top1));
  images_.add(static_cast<double>(step.images));
  seconds_.add(step.seconds);
  exchange_.add(step.phases.exchange);
  bytes_.add(step.bytes * ranks_);
}

void Progress::add_merged(const StepRecord& step) { merged_bytes_.add(step.bytes); }

void Progress::add_time(int64_t steps, double seconds) {
  if (steps > 0) wall_.add(seconds / static_cast<double>(steps), static_cast<double>(steps));
}

double Progress::validation_seconds(const Place& at) const {
  if (validation_ >= 0) return validation_;
  const auto micro_batches = static_cast<double>(at.to_validate);
  return micro_batches / static_cast<double>(config_.accumulate) * wall_.mean() / 3;
}

double Progress::seconds_left(const Place& at) const {
  int64_t steps = (config_.epochs - at.epoch) * at.batches - at.batch;
  if (config_.max_steps > 0) steps = std::min(steps, config_.max_steps - at.step);
  int64_t validations = 0;
  if (config_.eval_every && at.batches > 0) {
    const int64_t every = *config_.eval_every;
    // the last epoch is always validated
    const int64_t last = at.epoch + (at.batch + steps + at.batches - 1) / at.batches;
    validations = every == 0 ? 1 : last / every - at.epoch / every + (last % every != 0);
  }
  const double validation = validation_seconds(at);
  double left = static_cast<double>(validations) * validation;
  if (at.validated > 0 && at.to_validate > 0)
    left -= validation * static_cast<double>(at.validated) / static_cast<double>(at.to_validate);
  return wall_.mean() * static_cast<double>(steps) + left;
}

std::string Progress::line(const Place& at, int columns) const {
  const bool validates = at.validated >= 0;
  const int64_t done = validates ? at.validated : at.batch;
  int64_t total = validates ? at.to_validate : at.batches;
  if (!validates && config_.max_steps > 0)  // the run may end within the epoch
    total = std::min(total, at.batch + config_.max_steps - at.step);
  const std::string epoch =
      at.batches > 0 ? fmt::format("epoch {}/{} ", at.epoch + 1, config_.epochs) : "";
  const std::string count = fmt::format("{}{}/{}", validates ? "validating " : "", done, total);
  // in the order of the line; parts of higher rank are left out first
  struct Part {
    size_t rank;
    std::string text;
    bool shown = false;
  };
  std::vector<Part> parts;
  if (const double seconds = wall_.mean(); seconds > 0 && images_.mean() > 0) {
    parts.push_back({1, fmt::format("loss {:.4f}", loss_.mean() / images_.mean())});
    parts.push_back({3, fmt::format("top-1 {:.3f}", top1_.mean() / images_.mean())});
    parts.push_back({2, fmt::format("{:.3g} s/step", seconds)});
    parts.push_back({4, fmt::format("{:.0f} images/s", ranks_ * images_.mean() / seconds)});
    if (ranks_ > 1) {
      const double bytes = merged_bytes_.weight > 0 ? merged_bytes_.mean() : bytes_.mean();
      parts.push_back({5, fmt::format("{:.0f} % exchange",
                                      100 * exchange_.mean() / std::max(1e-9, seconds_.mean()))});
      parts.push_back({6, fmt::format("{}/s", bytes_text(bytes / seconds))});
    }
    parts.push_back({0, "ETA " + clock_text(seconds_left(at))});
  }

  int64_t room = columns - static_cast<int64_t>(epoch.size() + count.size());
  std::vector<Part*> by_rank(parts.size());
  for (Part& part : parts) by_rank[part.rank] = &part;
  for (Part* const part : by_rank) {
    const int64_t length = static_cast<int64_t>(part->text.size()) + 2;
    if (length > room) break;
    part->shown = true;
    room -= length;
  }
  std::string text = epoch;
  constexpr int64_t kLeast = 10, kMost = 30;
  if (const int64_t width = std::min(room - 3, kMost); width >= kLeast) {
    const int64_t filled = total > 0 ? width * done / total : width;
    text += fmt::format("|{:#<{}}{:.<{}}| ", "", filled, "", width - filled);
  }
  text += count;
  for (const Part& part : parts)
    if (part.shown) text += "  " + part.text;
  return text.substr(0, static_cast<size_t>(std::max(0, columns)));
}

}  // namespace tw
