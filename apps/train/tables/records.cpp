#include "apps/train/tables/records.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "engine/io/json.h"

namespace tw {

namespace {

constexpr size_t kMostWaiting = 20;  // steps

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

void StepRecord::add(const StepRecord& other) {
  loss += other.loss;
  top1 += other.top1;
  images += other.images;
  nnz += other.nnz;
  k += other.k;
  bytes += other.bytes;
  seconds += other.seconds;
  phases += other.phases;
  wait += other.wait;
}

Json StepRecord::json() const {
  Json list = Json::array();
  for (const auto phase : kPhases) list.push_back(phases.*phase);
  return {{"loss", loss},   {"top1", top1},       {"images", images}, {"nnz", nnz},  {"k", k},
          {"bytes", bytes}, {"seconds", seconds}, {"phases", list},   {"wait", wait}};
}

StepRecord StepRecord::from_json(const Json& json) {
  StepRecord t;
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

std::string metrics_row(int64_t epoch, double lr, double density, const StepRecord& t,
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

StepLog::StepLog(std::function<void(const StepRecord&)> merged) : merged_(std::move(merged)) {
  waiting_.reserve(kMostWaiting);
}

void StepLog::add(Communicator& comm, const StepRecord& record) {
  waiting_.push_back(record);
  if (waiting_.size() == kMostWaiting) flush(comm);
}

void StepLog::flush(Communicator& comm) {
  const OperationScope operation(comm, "log");
  const std::span<const StepRecord> mine(waiting_);
  allgather(comm, std::as_bytes(mine), mine.size_bytes(), blocks_, mine.size_bytes());
  for (size_t i = 0; i < mine.size(); ++i) {
    StepRecord sum;
    double least_exchange = std::numeric_limits<double>::infinity();
    for (int r = 0; r < comm.size(); ++r) {
      StepRecord one;
      std::memcpy(&one, blocks_.exactly(r, mine.size_bytes()).data() + i * sizeof one, sizeof one);
      sum.step = one.step;
      sum.lr = one.lr;
      sum.density = one.density;
      sum.add(one);
      least_exchange = std::min(least_exchange, one.phases.exchange - one.wait);
    }
    sum.seconds /= comm.size();
    sum.phases /= comm.size();
    // the last rank to arrive does not wait: the least time is the exchange itself
    sum.wait = std::max(0.0, sum.phases.exchange - least_exchange);
    merged_(sum);
  }
  waiting_.clear();
}

}  // namespace tw
