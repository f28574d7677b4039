// Shared parts of CPU ops that use oneDNN. Included only by this folder and by
// engine/ops/cpu/.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <oneapi/dnnl/dnnl.hpp>
#include <span>
#include <vector>

#include "engine/core/context.h"
#include "engine/core/tensor.h"

namespace tw {

/// The oneDNN handles of a rank.
struct CpuHandles : DeviceHandles {
  dnnl::engine engine{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream{engine};
};

namespace onednn {

using Desc = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Type = dnnl::memory::data_type;

Type type(DType dtype);

/// Attributes of every primitive: the caller provides the scratchpad. oneDNN's own scratchpad
/// belongs to the creating thread, and ranks are threads.
dnnl::primitive_attr user_scratchpad();

/// During its lifetime, primitives are created for one thread, so that they can run inside a
/// parallel loop.
class OneThread {
 public:
  explicit OneThread(const Context& ctx);
  ~OneThread() { ctx_.bind_thread(); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const Context& ctx_;
};

/// One operand of a primitive: its layout in the caller's memory and the layout the primitive uses.
struct Operand {
  int arg;  ///< DNNL_ARG_...
  Desc outside, inside;
};

/// A primitive whose operands are reordered into Context::scratch() and back where the two
/// layouts differ. All memory objects are created once; a call only sets their pointers.
class Kernel {
 public:
  Kernel() = default;
  template <class PrimitiveDesc>
  Kernel(const dnnl::engine& engine, const PrimitiveDesc& desc, const std::vector<Operand>& inputs,
         const std::vector<Operand>& outputs, bool accumulates = false)
      : Kernel(engine, dnnl::primitive(desc.get()), desc.scratchpad_desc(), inputs, outputs,
               accumulates) {}

  size_t scratch_bytes() const { return staged_bytes_ + scratchpad_bytes_; }
  /// Pointers in the order of the operands. With `accumulate`, adds to the outputs; the kernel must
  /// have been created for that.
  void run(Context& ctx, std::initializer_list<void*> inputs, std::initializer_list<void*> outputs,
           bool accumulate = false) {
    compute(ctx, ctx.scratch(), inputs, outputs, accumulate);
    deliver(ctx, accumulate);
  }
  /// The two halves of run(), for kernels that compute in parallel on parts of a batch, each with
  /// its own scratch, and then write to the same outputs one after another.
  void compute(Context& ctx, std::span<std::byte> scratch, std::initializer_list<void*> inputs,
               std::initializer_list<void*> outputs, bool accumulate);
  void deliver(Context& ctx, bool accumulate);

 private:
  /// A primitive and its arguments for the C interface; the C++ interface allocates them in every
  /// call.
  struct Call {
    dnnl::primitive primitive{};
    std::vector<dnnl_exec_arg_t> arguments{};

    /// `memory` is kept alive by the kernel.
    void add(int arg, const dnnl::memory& memory) { arguments.push_back({arg, memory.get()}); }
    void execute(const dnnl::stream& stream) const;
  };
  struct Slot {
    dnnl::memory outside, inside;
    size_t offset = 0;  // of the inside copy in scratch
    bool differs = false;
    Call copy, add;
  };

  Kernel(const dnnl::engine& engine, const dnnl::primitive& primitive, const Desc& scratchpad,
         const std::vector<Operand>& inputs, const std::vector<Operand>& outputs, bool accumulates);
  Slot make_slot(const dnnl::engine& engine, const Operand& operand, bool staged);
  Call make_copy(const dnnl::memory& from, const dnnl::memory& to, bool add);
  void lend_scratchpad(const dnnl::engine& engine, const Desc& scratchpad, Call& call);

  Call compute_;
  std::vector<Slot> inputs_, outputs_;
  std::vector<dnnl::memory> scratchpads_;  // of all calls, which run one by one and share memory
  size_t staged_bytes_ = 0, scratchpad_bytes_ = 0;
};

/// The packed compute copy of a weight matrix or filter: one in the layout of forward and, if
/// backward data uses another layout, a second one after it.
class PackedWeights {
 public:
  PackedWeights() = default;
  /// `master`: the fp32 weights. `backward` may be empty: no input gradient is computed.
  PackedWeights(const dnnl::engine& engine, const Desc& master, const Desc& forward,
                const Desc& backward);

  size_t bytes() const { return bytes_; }
  size_t scratch_bytes() const {
    return std::max(forward_.scratch_bytes(), backward_.scratch_bytes());
  }
  void pack(Context& ctx, const Tensor& w, const Tensor& packed);
  void* for_forward(const Tensor& packed) const { return packed.data; }
  void* for_backward(const Tensor& packed) const {
    return static_cast<std::byte*>(packed.data) + offset_;
  }

 private:
  Kernel forward_, backward_;
  size_t bytes_ = 0, offset_ = 0;
};

}  // namespace onednn
}  // namespace tw
