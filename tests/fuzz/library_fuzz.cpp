// The C interface: the first line is the options of a reducer, the rest changes its state, two
// bytes of position and one of value at a time. Every call is done or a misuse.
#include <cstdlib>
#include <string>
#include <vector>

#include "apps/library/thinwire.h"
#include "tests/fuzz/support/mend_safetensors.h"

namespace {

constexpr int64_t kShape[] = {6, 5};
constexpr thinwire_tensor kTensors[] = {{"weight", kShape, 2}, {"bias", kShape, 1}};

void must(bool holds) {
  if (!holds) std::abort();
}

int64_t alone(void*, int, const void*, size_t, int, void*, size_t, double) { return 0; }

void step(thinwire_reducer* reducer, uint64_t number) {
  std::vector<float> weight(30, 1), bias(6, -2);
  float* const gradients[] = {weight.data(), bias.data()};
  const thinwire_step input{.step = number, .density = 0.2, .warmup = 0, .stop = 0};
  thinwire_report report;
  must(thinwire_reducer_step(reducer, &input, gradients, &report) == THINWIRE_OK);
}

std::string saved(thinwire_reducer* reducer) {
  size_t bytes = 0;
  must(thinwire_reducer_save(reducer, nullptr, &bytes) == THINWIRE_OK);
  std::string state(bytes, 0);
  must(thinwire_reducer_save(reducer, state.data(), &bytes) == THINWIRE_OK);
  return state;
}

void use(thinwire_reducer* reducer, const std::string& changes) {
  step(reducer, 0);
  const std::string state = saved(reducer);
  must(thinwire_reducer_load(reducer, state.data(), state.size()) == THINWIRE_OK);
  must(saved(reducer) == state);
  std::string changed = state;
  for (size_t i = 0; i + 3 <= changes.size(); i += 3) {
    const auto high = static_cast<uint8_t>(changes[i]), low = static_cast<uint8_t>(changes[i + 1]);
    changed[(high * size_t{256} + low) % changed.size()] = changes[i + 2];
  }
  tw::fuzz::mend_safetensors(changed);
  const int code = thinwire_reducer_load(reducer, changed.data(), changed.size());
  must(code == THINWIRE_OK || code == THINWIRE_MISUSE);
  if (code == THINWIRE_MISUSE) {
    must(saved(reducer) == state);  // nothing of it was taken
    step(reducer, 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const size_t line = std::min(text.find('\n'), size);
  const thinwire_callbacks callbacks{
      .rank = 0, .size = 1, .user = nullptr, .exchange = alone, .abort = nullptr};
  thinwire_group* group = nullptr;
  must(thinwire_group_of_callbacks(&callbacks, &group) == THINWIRE_OK);
  thinwire_reducer* reducer = nullptr;
  const int code =
      thinwire_reducer_create(group, text.substr(0, line).c_str(), kTensors, 2, &reducer);
  must(code == THINWIRE_OK || code == THINWIRE_MISUSE);
  if (code == THINWIRE_OK) use(reducer, text.substr(std::min(line + 1, size)));
  thinwire_reducer_free(reducer);
  thinwire_group_free(group);
  return 0;
}
