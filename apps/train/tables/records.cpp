#include "apps/train/tables/records.h"

#include <nlohmann/json.hpp>

#include "engine/io/json.h"

namespace tw {

namespace {

/// The phases in the order of the CSV columns.
constexpr double PhaseSeconds::*kPhases[] = {&PhaseSeconds::data,     &PhaseSeconds::forward,
                                             &PhaseSeconds::backward, &PhaseSeconds::select,
                                             &PhaseSeconds::exchange, &PhaseSeconds::update};

std::string phase_columns(const PhaseSeconds& phases, double wait) {
  std::string text;
  for (const auto phase : kPhases) text += fmt::format(",{:.6f}", phases.*phase);
  return text + fmt::format(",{:.6f}", wait);
}

/// a / b, or 0 where nothing was counted.
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

const char* const kStepHeader =
    "step,epoch,lr,density,train_loss,train_top1,images,seconds,nnz_over_k,bytes_sent,"
    "sec_data,sec_forward,sec_backward,sec_select,sec_exchange,sec_update,sec_wait";
const char* const kMetricsHeader =
    "epoch,lr,density,train_loss,train_top1,val_loss,val_top1,val_top5,images_per_s,seconds,"
    "nnz_over_k,bytes_sent,sec_data,sec_forward,sec_backward,sec_select,sec_exchange,sec_update,"
    "sec_wait";

PhaseSeconds& PhaseSeconds::operator+=(const PhaseSeconds& other) {
  for (const auto phase : kPhases) this->*phase += other.*phase;
  return *this;
}

PhaseSeconds& PhaseSeconds::operator/=(double divisor) {
  for (const auto phase : kPhases) this->*phase /= divisor;
  return *this;
}

void EpochTotals::add(const StepRecord& step) {
  loss += step.loss;
  top1 += step.top1;
  images += step.images;
  nnz += step.nnz;
  k += step.k;
  bytes += step.bytes;
  seconds += step.seconds;
  phases += step.phases;
  wait += step.wait;
}

Json EpochTotals::json() const {
  Json list = Json::array();
  for (const auto phase : kPhases) list.push_back(phases.*phase);
  return {{"loss", loss},   {"top1", top1},       {"images", images}, {"nnz", nnz},  {"k", k},
          {"bytes", bytes}, {"seconds", seconds}, {"phases", list},   {"wait", wait}};
}

EpochTotals EpochTotals::from_json(const Json& json) {
  EpochTotals t;
  json.at("loss").get_to(t.loss);
  t.top1 = integer_of(json.at("top1"));
  t.images = integer_of(json.at("images"));
  json.at("nnz").get_to(t.nnz);
  json.at("k").get_to(t.k);
  json.at("bytes").get_to(t.bytes);
  json.at("seconds").get_to(t.seconds);
  size_t i = 0;
  for (const auto phase : kPhases) json.at("phases").at(i++).get_to(t.phases.*phase);
  t.wait = json.value("wait", 0.0);  // older checkpoints have none
  return t;
}

std::string step_row(const StepRecord& s, int64_t epoch) {
  const double images = static_cast<double>(s.images);
  return fmt::format("{},{},{:.9g},{:.9g},{:.9g},{:.6f},{},{:.6f},{:.6f},{:.0f}{}", s.step, epoch,
                     s.lr, s.density, ratio(s.loss, images),
                     ratio(static_cast<double>(s.top1), images), s.images, s.seconds,
                     ratio(s.nnz, s.k), s.bytes, phase_columns(s.phases, s.wait));
}

std::string metrics_row(int64_t epoch, double lr, double density, const EpochTotals& t,
                        const ops::LossSums& val) {
  const double images = static_cast<double>(t.images);
  const double val_images = static_cast<double>(val.count);
  const std::string val_columns = val.count == 0
                                      ? ",,"
                                      : fmt::format("{:.9g},{:.6f},{:.6f}", val.loss / val_images,
                                                    static_cast<double>(val.top1) / val_images,
                                                    static_cast<double>(val.top5) / val_images);
  return fmt::format("{},{:.9g},{:.9g},{:.9g},{:.6f},{},{:.1f},{:.3f},{:.6f},{:.0f}{}", epoch, lr,
                     density, ratio(t.loss, images), ratio(static_cast<double>(t.top1), images),
                     val_columns, ratio(images, t.seconds), t.seconds, ratio(t.nnz, t.k), t.bytes,
                     phase_columns(t.phases, t.wait));
}

}  // namespace tw
