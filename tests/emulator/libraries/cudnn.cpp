// Emulated cuDNN: the calls of its graph API that the engine makes. A graph is one convolution, and
// has the engines of emulator::engines().
#include "tests/emulator/libraries/cudnn.h"

#include <cudnn.h>
#include <cudnn_graph.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "tests/emulator/libraries/convolution.h"
#include "tests/emulator/stream.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
};

namespace {

using tw::DType;
using tw::emulator::ConvolutionPass;

/// A descriptor; an attribute is a value or another descriptor.
struct Node {
  cudnnBackendDescriptorType_t type;
  bool final = false;
  std::map<cudnnBackendAttributeName_t, std::vector<std::byte>> values{};
  std::map<cudnnBackendAttributeName_t, std::shared_ptr<Node>> nodes{};

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t name) const {
    const std::vector<std::byte>& bytes = values.at(name);
    std::vector<T> result(bytes.size() / sizeof(T));
    std::memcpy(result.data(), bytes.data(), bytes.size());
    return result;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t name) const {
    return all<T>(name).at(0);
  }
};

std::shared_ptr<Node>& node_of(cudnnBackendDescriptor_t descriptor) {
  return *static_cast<std::shared_ptr<Node>*>(descriptor);
}

size_t bytes_of(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_HANDLE:
      return 8;
    case CUDNN_TYPE_CHAR:
      return 1;
    default:
      return 4;  // enumerations and floats
  }
}

tw::emulator::Image image(const Node& tensor) {
  const auto dims = tensor.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
  const auto strides = tensor.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
  const auto type = tensor.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  if (type != CUDNN_DATA_BFLOAT16 && type != CUDNN_DATA_FLOAT)
    throw std::logic_error("[emulator] this cuDNN data type is not emulated");
  tw::emulator::Image result{.dtype = type == CUDNN_DATA_BFLOAT16 ? DType::bf16 : DType::f32};
  std::copy_n(dims.begin(), 4, result.dims.begin());
  std::copy_n(strides.begin(), 4, result.strides.begin());
  return result;
}

/// The attribute names of an operation; cuDNN has a set for each pass.
struct Names {
  ConvolutionPass pass;
  cudnnBackendAttributeName_t x, w, y, convolution, beta;
};
Names names_of(cudnnBackendDescriptorType_t type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return {ConvolutionPass::forward,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return {ConvolutionPass::backward_data,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return {ConvolutionPass::backward_filter,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
    default:
      throw std::logic_error("[emulator] this cuDNN operation is not emulated");
  }
}

tw::emulator::Convolution convolution(const Node& operation, const Node& pack) {
  const Names names = names_of(operation.type);
  const auto uids = pack.all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = pack.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  const auto bound = [&](cudnnBackendAttributeName_t name) {
    const Node& tensor = *operation.nodes.at(name);
    tw::emulator::Image result = image(tensor);
    for (size_t i = 0; i < uids.size(); ++i)
      if (uids[i] == tensor.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID)) result.data = pointers[i];
    return result;
  };
  const Node& shape = *operation.nodes.at(names.convolution);
  return {.pass = names.pass,
          .x = bound(names.x),
          .w = bound(names.w),
          .y = bound(names.y),
          .stride = shape.one<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES),
          .padding = shape.one<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
          .accumulate = operation.one<float>(names.beta) != 0};
}

constexpr int64_t kWorkspace = 20000;  ///< bytes, of every plan; running it overwrites them
constexpr uintptr_t kAlignment = 256;  ///< of the workspace, as cudaMalloc aligns it

/// Sets the descriptor that the caller made for a result.
void set_result(void* handles, const std::shared_ptr<Node>& node) {
  node_of(*static_cast<cudnnBackendDescriptor_t*>(handles)) = node;
}

void put(std::vector<std::byte>& to, int64_t value) {
  to.resize(sizeof value);
  std::memcpy(to.data(), &value, sizeof value);
}

}  // namespace

std::vector<tw::emulator::Engine>& tw::emulator::engines() {
  static std::vector<Engine> all{Engine::runs};
  return all;
}

extern "C" {

size_t cudnnGetVersion() { return CUDNN_VERSION; }
const char* cudnnGetErrorString(cudnnStatus_t) { return "error of the CUDA emulator"; }
void cudnnGetLastErrorString(char* text, size_t bytes) {
  if (bytes > 0) *text = '\0';
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  *handle = new cudnnContext;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  delete handle;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  *descriptor = new std::shared_ptr<Node>(new Node{.type = type});
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  delete &node_of(descriptor);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  Node& node = *node_of(descriptor);
  if (node.final) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    const auto& value = node_of(*static_cast<cudnnBackendDescriptor_t const*>(values));
    if (count != 1 || !value->final) return CUDNN_STATUS_BAD_PARAM;
    node.nodes[name] = value;
    return CUDNN_STATUS_SUCCESS;
  }
  const auto* const first = static_cast<const std::byte*>(values);
  node.values[name].assign(first, first + static_cast<size_t>(count) * bytes_of(type));
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  Node& node = *node_of(descriptor);
  if (node.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)
    put(node.values[CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE], kWorkspace);
  node.final = true;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t, int64_t, int64_t* count,
                                       void* values) {
  const Node& node = *node_of(descriptor);
  *count = 1;
  switch (name) {
    case CUDNN_ATTR_ENGINEHEUR_RESULTS:
      *count = std::ssize(tw::emulator::engines());
      for (int64_t i = 0; i < *count; ++i) {
        auto config = std::make_shared<Node>(Node{.type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR});
        config->nodes = node.nodes;
        put(config->values[CUDNN_ATTR_ENGINE_GLOBAL_INDEX], i);
        config->final = true;
        set_result(static_cast<cudnnBackendDescriptor_t*>(values) + i, config);
      }
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      auto engine = std::make_shared<Node>(Node{.type = CUDNN_BACKEND_ENGINE_DESCRIPTOR});
      engine->values = node.values;
      engine->final = true;
      set_result(values, engine);
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX:
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      *static_cast<int64_t*>(values) = node.one<int64_t>(name);
      break;
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE:
    case CUDNN_ATTR_ENGINECFG_KNOB_CHOICES:
      *count = 0;
      break;
    default:
      return CUDNN_STATUS_NOT_SUPPORTED;
  }
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  const Node& config = *node_of(plan)->nodes.at(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  const Node& graph = *config.nodes.at(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
  auto wanted = convolution(*graph.nodes.at(CUDNN_ATTR_OPERATIONGRAPH_OPS), *node_of(pack));
  void* const workspace = node_of(pack)->one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  if (reinterpret_cast<uintptr_t>(workspace) % kAlignment != 0) return CUDNN_STATUS_BAD_PARAM;
  const auto number = static_cast<size_t>(config.one<int64_t>(CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
  const tw::emulator::Engine engine = tw::emulator::engines().at(number);
  if (engine == tw::emulator::Engine::refuses) return CUDNN_STATUS_EXECUTION_FAILED;
  if (engine == tw::emulator::Engine::breaks_capture) tw::emulator::refused_in_capture();
  wanted.rounds = engine == tw::emulator::Engine::rounds;
  tw::emulator::queue(handle->stream, [wanted, workspace] {
    std::memset(workspace, 0xff, kWorkspace);
    wanted.run();
  });
  return CUDNN_STATUS_SUCCESS;
}
}
