#include "engine/cuda/cudnn_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/core/error.h"
#include "engine/cuda/cuda.h"

namespace tw::cudnn {

namespace {

/// Names of tensors in a graph.
enum Uid : int64_t { kX = 1, kW, kY };

cudnnDataType_t type_of(DType dtype) {
  return dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
}

Descriptor make_tensor(Uid uid, const Dims& dims, DType dtype) {
  Descriptor tensor(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  const cudnnDataType_t type = type_of(dtype);
  const auto [n, c, h, w] = dims;
  const Dims strides{h * w * c, 1, w * c, c};
  tensor.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  tensor.set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims);
  tensor.set(CUDNN_ATTR_TENSOR_STRIDES, strides);
  tensor.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});  // the planner aligns to 256
  tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{uid});
  tensor.finalize();
  return tensor;
}

Descriptor make_convolution(const Convolution& c) {
  Descriptor conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  const cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const std::array<int64_t, 2> strides{c.stride, c.stride}, paddings{c.padding, c.padding};
  const std::array<int64_t, 2> dilations{1, 1};
  conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &compute);
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, int64_t{2});
  conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, strides);
  conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, paddings);
  conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, paddings);
  conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations);
  conv.finalize();
  return conv;
}

/// Name, descriptor type and attributes of a pass.
struct PassNames {
  const char* text;
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

const PassNames& names_of(ConvPass pass) {
  static constexpr PassNames names[] = {
      {"forward", CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
      {"backward data", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
      {"backward filter", CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
       CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
  return names[static_cast<size_t>(pass)];
}

/// The pass as a graph of one operation.
Descriptor make_graph(const Target& target, const Convolution& c) {
  const PassNames& names = names_of(c.pass);
  const Descriptor x = make_tensor(kX, c.x, c.x_type), w = make_tensor(kW, c.w, c.w_type);
  const Descriptor y = make_tensor(kY, c.y, c.y_type), convolution = make_convolution(c);
  Descriptor operation(names.type);
  operation.set(names.x, x);
  operation.set(names.w, w);
  operation.set(names.y, y);
  operation.set(names.convolution, convolution);
  operation.set(names.alpha, 1.0f);
  operation.set(names.beta, c.accumulate ? 1.0f : 0.0f);
  operation.finalize();
  Descriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  if (target.handle != nullptr)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  graph.finalize();
  return graph;
}

/// Up to `most` descriptors of a type, read from an attribute.
std::vector<Descriptor> get_all(const Descriptor& from, cudnnBackendAttributeName_t attribute,
                                cudnnBackendDescriptorType_t type, int64_t most) {
  std::vector<Descriptor> all;
  std::vector<cudnnBackendDescriptor_t> handles;
  for (int64_t i = 0; i < most; ++i) handles.push_back(all.emplace_back(type).get());
  const int64_t count = from.get(attribute, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, handles.data());
  all.erase(all.begin() + count, all.end());
  return all;
}

/// Engine configurations proposed by one mode of the heuristics; may be none.
std::vector<Descriptor> propose(const Target& target, const Descriptor& graph,
                                cudnnBackendHeurMode_t mode) {
  Descriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
  heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
  if (target.device != nullptr) heuristics.set(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP, *target.device);
  if (!heuristics.try_finalize()) return {};
  return get_all(heuristics, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, 32);
}

Descriptor engine_of(const Descriptor& config) {
  Descriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t handle = engine.get();
  config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &handle);
  return engine;
}

bool within(const Limits& limits, const Descriptor& engine, const Convolution& c) {
  std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
  const int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                   std::ssize(notes), notes.data());
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes.begin(), notes.begin() + count, note) != notes.begin() + count;
  };
  if (limits.deterministic && has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC)) return false;
  if (has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION)) return false;
  if (c.x_type == DType::bf16) return true;
  if (has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  // fp32 on tensor cores is TF32; without it, transforms that round are excluded, too
  return limits.tf32 || !(has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE) ||
                          has(CUDNN_NUMERICAL_NOTE_WINOGRAD) || has(CUDNN_NUMERICAL_NOTE_FFT));
}

/// `engine 1030, 2=16, 14=0`: engine and knobs.
std::string text_of(const Descriptor& config, const Descriptor& engine) {
  int64_t index = 0;
  engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &index);
  std::string text = fmt::format("engine {}", index);
  for (const Descriptor& knob :
       get_all(config, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR,
               CUDNN_KNOB_TYPE_COUNTS)) {
    cudnnBackendKnobType_t type{};
    int64_t value = 0;
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type);
    knob.get(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, CUDNN_TYPE_INT64, 1, &value);
    text += fmt::format(", {}={}", static_cast<int>(type), value);
  }
  return text;
}

}  // namespace

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cuda::expect_cudnn(cudnnBackendCreateDescriptor(type, &handle_), "descriptor");
}

Descriptor::~Descriptor() {
  if (handle_ != nullptr) cudnnBackendDestroyDescriptor(handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                     int64_t count, const void* values) {
  cuda::expect_cudnn(cudnnBackendSetAttribute(handle_, name, type, count, values), "attribute");
}

void Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.handle_);
}

void Descriptor::set(cudnnBackendAttributeName_t name, std::span<const int64_t> values) {
  set(name, CUDNN_TYPE_INT64, std::ssize(values), values.data());
}

int64_t Descriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        int64_t capacity, void* values) const {
  int64_t count = 0;
  cuda::expect_cudnn(cudnnBackendGetAttribute(handle_, name, type, capacity, &count, values),
                     "attribute");
  return std::min(count, capacity);
}

bool Descriptor::try_finalize() { return cudnnBackendFinalize(handle_) == CUDNN_STATUS_SUCCESS; }

void Descriptor::finalize() { cuda::expect_cudnn(cudnnBackendFinalize(handle_), "finalize"); }

std::string Convolution::text() const {
  return fmt::format("{}{} x ({}) {} w ({}) {} y ({}) {} stride {} padding {}", names_of(pass).text,
                     accumulate ? " added" : "", fmt::join(x, ","), name(x_type), fmt::join(w, ","),
                     name(w_type), fmt::join(y, ","), name(y_type), stride, padding);
}

ConvPlan::ConvPlan(Descriptor plan, Descriptor config, std::string text)
    : config_(std::move(config)), plan_(std::move(plan)), text_(std::move(text)) {
  int64_t bytes = 0;
  plan_.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &bytes);
  workspace_bytes_ = static_cast<size_t>(bytes);
}

void ConvPlan::run(cudnnHandle_t handle, void* x, void* w, void* y, void* workspace) {
  const std::array<void*, 4> wanted{x, w, y, workspace};
  if (wanted != bound_) {
    const std::array<int64_t, 3> uids{kX, kW, kY};
    pointers_ = Descriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pointers_.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids);
    pointers_.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, wanted.data());
    pointers_.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    pointers_.finalize();
    bound_ = wanted;
  }
  const cudnnStatus_t status = cudnnBackendExecute(handle, plan_.get(), pointers_.get());
  if (status != CUDNN_STATUS_SUCCESS) [[unlikely]]
    fail<Refused>("[cuda] cuDNN convolution: {} ({})", cudnnGetErrorString(status), text_);
}

void for_each_plan(const Target& target, const Convolution& convolution, const Limits& limits,
                   const std::function<bool(ConvPlan)>& visit) {
  const Descriptor graph = make_graph(target, convolution);
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    for (Descriptor& config : propose(target, graph, mode)) {
      const Descriptor engine = engine_of(config);
      if (!within(limits, engine, convolution)) continue;
      Descriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      if (target.handle != nullptr)
        plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
      if (target.device != nullptr) plan.set(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, *target.device);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
      if (!plan.try_finalize()) continue;  // proposed but not valid for this shape
      std::string text = text_of(config, engine);
      ConvPlan ready(std::move(plan), std::move(config), std::move(text));
      if (ready.workspace_bytes() > limits.workspace) continue;
      if (!visit(std::move(ready))) return;
    }
  }
}

}  // namespace tw::cudnn
