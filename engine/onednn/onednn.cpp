#include "engine/onednn/onednn.h"

#include <omp.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "engine/core/cpu_features.h"
#include "engine/core/error.h"
#include "engine/core/instruction_set.h"

namespace tw {

namespace {

/// Holds oneDNN, before its first use, to the instruction set that THINWIRE_CPU names. Without it
/// ONEDNN_MAX_CPU_ISA decides.
void limit_to_instruction_set() {
  static const bool limited = [] {
    const InstructionSet set = instruction_set();
    if (set == InstructionSet::v4) return false;
    const char* const named = std::getenv("THINWIRE_CPU");
    if ((named == nullptr || *named == '\0') && std::getenv("ONEDNN_MAX_CPU_ISA") != nullptr)
      return false;
    dnnl::set_max_cpu_isa(set == InstructionSet::v3 ? dnnl::cpu_isa::avx2 : dnnl::cpu_isa::sse41);
    return true;
  }();
  static_cast<void>(limited);
}

bool has(dnnl_cpu_isa_t wanted) {
  limit_to_instruction_set();
  const auto isa = static_cast<unsigned>(dnnl::get_effective_cpu_isa());
  return (isa & wanted) == static_cast<unsigned>(wanted);
}

}  // namespace

std::string cpu_model() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);)
    if (const size_t colon = line.find(": "); line.starts_with("model name") && colon != line.npos)
      return line.substr(colon + 2);
  return "unknown model";
}

bool cpu_has_avx512() { return has(dnnl_cpu_isa_avx512_core); }
bool cpu_has_amx() { return has(dnnl_cpu_isa_avx512_core_amx); }
bool cpu_has_bf16() { return has(dnnl_cpu_isa_avx512_core_bf16) || cpu_has_amx(); }

std::string onednn_version() {
  const dnnl_version_t& v = *dnnl_version();
  return fmt::format("{}.{}.{}", v.major, v.minor, v.patch);
}

namespace {
const bool onednn_registered =
    device_handles_dispatch.add(Device::cpu, [](int) -> std::unique_ptr<DeviceHandles> {
      limit_to_instruction_set();
      return std::make_unique<CpuHandles>();
    });
}

namespace onednn {

namespace {

size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

Type type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return Type::f32;
    case DType::bf16:
      return Type::bf16;
    case DType::i32:
      return Type::s32;
    case DType::u8:
      return Type::u8;
  }
  return Type::undef;
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attr;
}

OneThread::OneThread(const Context& ctx) : ctx_(ctx) { omp_set_num_threads(1); }

Kernel::Kernel(const dnnl::engine& engine, const dnnl::primitive& primitive, const Desc& scratchpad,
               const std::vector<Operand>& inputs, const std::vector<Operand>& outputs,
               bool accumulates) {
  compute_.primitive = primitive;
  for (const Operand& operand : inputs) {
    Slot& slot = inputs_.emplace_back(make_slot(engine, operand, false));
    if (slot.differs) slot.copy = make_copy(slot.outside, slot.inside, false);
    compute_.add(operand.arg, slot.inside);
  }
  for (const Operand& operand : outputs) {
    Slot& slot = outputs_.emplace_back(make_slot(engine, operand, accumulates));
    if (slot.differs) slot.copy = make_copy(slot.inside, slot.outside, false);
    if (accumulates) slot.add = make_copy(slot.inside, slot.outside, true);
    compute_.add(operand.arg, slot.inside);
  }
  lend_scratchpad(engine, scratchpad, compute_);
}

void Kernel::Call::execute(const dnnl::stream& stream) const {
  const dnnl_status_t status = dnnl_primitive_execute(
      primitive.get(), stream.get(), static_cast<int>(arguments.size()), arguments.data());
  check<Fault>(status == dnnl_success, "[onednn] a primitive failed with status {}",
               static_cast<int>(status));
}

Kernel::Slot Kernel::make_slot(const dnnl::engine& engine, const Operand& operand, bool staged) {
  Slot slot;
  slot.outside = dnnl::memory(operand.outside, engine, nullptr);
  slot.inside = dnnl::memory(operand.inside, engine, nullptr);
  slot.differs = operand.outside != operand.inside;
  slot.offset = staged_bytes_;
  if (slot.differs || staged) staged_bytes_ += aligned(operand.inside.get_size());
  return slot;
}

Kernel::Call Kernel::make_copy(const dnnl::memory& from, const dnnl::memory& to, bool add) {
  dnnl::primitive_attr attr = user_scratchpad();
  if (add) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attr.set_post_ops(sum);
  }
  const dnnl::engine engine = from.get_engine();
  const dnnl::reorder::primitive_desc desc(engine, from.get_desc(), engine, to.get_desc(), attr);
  Call call{dnnl::reorder(desc)};
  call.add(DNNL_ARG_FROM, from);
  call.add(DNNL_ARG_TO, to);
  lend_scratchpad(engine, desc.scratchpad_desc(), call);
  return call;
}

void Kernel::lend_scratchpad(const dnnl::engine& engine, const Desc& scratchpad, Call& call) {
  if (scratchpad.get_size() == 0) return;
  scratchpad_bytes_ = std::max(scratchpad_bytes_, aligned(scratchpad.get_size()));
  const auto& memory = scratchpads_.emplace_back(scratchpad, engine, nullptr);
  call.add(DNNL_ARG_SCRATCHPAD, memory);
}

void Kernel::compute(Context& ctx, std::span<std::byte> scratch,
                     std::initializer_list<void*> inputs, std::initializer_list<void*> outputs,
                     bool accumulate) {
  check<std::logic_error>(scratch.size() >= scratch_bytes(),
                          "[onednn] {} bytes of scratch; {} are needed", scratch.size(),
                          scratch_bytes());
  const dnnl::stream& stream = ctx.handles<CpuHandles>().stream;
  for (const auto& memory : scratchpads_) memory.set_data_handle(scratch.data() + staged_bytes_);
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Slot& slot = inputs_[i];
    slot.outside.set_data_handle(inputs.begin()[i]);
    slot.inside.set_data_handle(slot.differs ? scratch.data() + slot.offset : inputs.begin()[i]);
    if (slot.differs) slot.copy.execute(stream);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const Slot& slot = outputs_[i];
    const bool staged = slot.differs || accumulate;
    slot.outside.set_data_handle(outputs.begin()[i]);
    slot.inside.set_data_handle(staged ? scratch.data() + slot.offset : outputs.begin()[i]);
  }
  compute_.execute(stream);
}

void Kernel::deliver(Context& ctx, bool accumulate) {
  const dnnl::stream& stream = ctx.handles<CpuHandles>().stream;
  for (const Slot& slot : outputs_) {
    if (accumulate)
      slot.add.execute(stream);
    else if (slot.differs)
      slot.copy.execute(stream);
  }
}

PackedWeights::PackedWeights(const dnnl::engine& engine, const Desc& master, const Desc& forward,
                             const Desc& backward)
    : bytes_(forward.get_size()) {
  const auto copy = [&](const Desc& packed) {
    const dnnl::reorder::primitive_desc desc(engine, master, engine, packed, user_scratchpad());
    return Kernel(engine, desc, {{DNNL_ARG_FROM, master, master}}, {{DNNL_ARG_TO, packed, packed}});
  };
  forward_ = copy(forward);
  if (backward == Desc{} || backward == forward) return;
  backward_ = copy(backward);
  offset_ = aligned(bytes_);
  bytes_ = offset_ + backward.get_size();
}

void PackedWeights::pack(Context& ctx, const Tensor& w, const Tensor& packed) {
  forward_.run(ctx, {w.data}, {for_forward(packed)});
  if (offset_ > 0) backward_.run(ctx, {w.data}, {for_backward(packed)});
}

}  // namespace onednn
}  // namespace tw
