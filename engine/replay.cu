#include <algorithm>

#include "engine/buffer.h"
#include "engine/cuda_kernel.h"
#include "engine/error.h"
#include "engine/ops/nonfinite_cuda.h"
#include "engine/replay.h"

namespace tw {
namespace {

constexpr uint32_t kNone = ~0u;

/// On the device: rates to come and sums that came, by launch since start().
struct Tape {
  float lrs[Replay::kMost] = {};
  ops::LossSums sums[Replay::kMost];
  uint32_t at = 0;
  uint32_t bad_at = kNone;
  float bad_value = 0;
};

__global__ void advance_kernel(Tape* tape, ReplayInput* input, ops::LossSums* sums,
                               const float* gradients) {
  const uint32_t at = tape->at, next = at + 1;
  if (at >= Replay::kMost) return;  // launched more often than announced
  tape->sums[at] = *sums;
  *sums = ops::LossSums{};
  if (input->nonfinite != kAllFinite && tape->bad_at == kNone) {
    tape->bad_at = at;
    tape->bad_value = gradients[input->nonfinite];
  }
  tape->at = next;
  input->step += 1;
  input->lr = next < Replay::kMost ? tape->lrs[next] : 0.0f;
}

class CudaReplay final : public Replay {
 public:
  explicit CudaReplay(Context& ctx)
      : ctx_(ctx), native_(ctx.native<CudaNative>()), tape_(Device::cuda, sizeof(Tape)) {}

  void start(uint64_t step, std::span<const float> lrs) override {
    tw::check<std::logic_error>(!lrs.empty() && lrs.size() <= kMost,
                                "[replay] {} steps; at most {}", lrs.size(), +kMost);
    count_ = lrs.size();
    Tape tape;
    std::ranges::copy(lrs, tape.lrs);
    put(&tape, tape_.data(), sizeof tape);
    const ReplayInput input{.step = step, .lr = lrs[0]};
    put(&input, native_.replay(), sizeof input);
  }

  void check(std::span<const float> gradients) override { ops::note_nonfinite(ctx_, gradients); }

  void advance(const Tensor& sums, std::span<const float> gradients) override {
    cuda::launch(ctx_, "advance", advance_kernel, 1, 1, tape(), native_.replay(),
                 static_cast<ops::LossSums*>(sums.data), gradients.data());
  }

  Outcome finish() override {
    Tape tape;
    ReplayInput input;
    get(tape_.data(), &tape, sizeof tape);
    get(native_.replay(), &input, sizeof input);
    const ReplayInput outside;
    put(&outside, native_.replay(), sizeof outside);
    tw::check<std::logic_error>(tape.at == count_, "[replay] {} launches; {} were announced",
                                tape.at, count_);
    Outcome outcome;
    outcome.sums.assign(tape.sums, tape.sums + count_);
    if (tape.bad_at != kNone) {
      outcome.bad_launch = tape.bad_at;
      outcome.bad_index = static_cast<size_t>(input.nonfinite);
      outcome.bad_value = tape.bad_value;
    }
    return outcome;
  }

 private:
  Tape* tape() const { return reinterpret_cast<Tape*>(tape_.data()); }

  // memory of the host on the stack: both wait until it has been read or written
  void put(const void* host, void* device, size_t bytes) {
    cuda::expect(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, native_.stream()),
                 "replay");
    native_.synchronize();
  }
  void get(const void* device, void* host, size_t bytes) {
    cuda::expect(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, native_.stream()),
                 "replay");
    native_.synchronize();
  }

  Context& ctx_;
  CudaNative& native_;
  Buffer tape_;
  size_t count_ = 0;
};

const bool registered = replay_bodies.add(
    Device::cuda,
    [](Context& ctx) -> std::unique_ptr<Replay> { return std::make_unique<CudaReplay>(ctx); });

}  // namespace
}  // namespace tw
