#include "apps/export/onnx.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "apps/common/version.h"
#include "engine/core/error.h"
#include "engine/io/protobuf.h"

namespace tw {

namespace {

const std::string kInput = "input", kOutput = "logits";

enum class OnnxType : int64_t { f32 = 1, i64 = 7 };

// the fields of ONNX's messages are numbered as in its onnx.proto

enum class AttributeKind : int64_t { real = 1, integer = 2, integers = 7 };

/// An attribute without its value.
ProtobufMessage attribute(const std::string& name, AttributeKind kind) {
  ProtobufMessage m;
  m.bytes(1, name);
  m.number(20, static_cast<int64_t>(kind));
  return m;
}

ProtobufMessage attribute(const std::string& name, int64_t value) {
  ProtobufMessage m = attribute(name, AttributeKind::integer);
  m.number(3, value);
  return m;
}

ProtobufMessage attribute(const std::string& name, float value) {
  ProtobufMessage m = attribute(name, AttributeKind::real);
  m.real(2, value);
  return m;
}

ProtobufMessage attribute(const std::string& name, std::initializer_list<int64_t> values) {
  ProtobufMessage m = attribute(name, AttributeKind::integers);
  for (const int64_t value : values) m.number(8, value);
  return m;
}

/// An input or output of the graph with a variable number of images.
ProtobufMessage value_info(const std::string& name, std::initializer_list<int64_t> sizes) {
  ProtobufMessage any, shape, tensor, type, info;
  any.bytes(2, "N");
  shape.message(1, any);
  for (const int64_t size : sizes) {
    ProtobufMessage dimension;
    dimension.number(1, size);
    shape.message(1, dimension);
  }
  tensor.number(1, static_cast<int64_t>(OnnxType::f32));
  tensor.message(2, shape);
  type.message(1, tensor);
  info.bytes(1, name);
  info.message(2, type);
  return info;
}

/// The name of the layer that has this parameter: `layer1.0.conv1`.
std::string layer_of(const Parameter& p) { return p.name.substr(0, p.name.rfind('.')); }

class OnnxGraph {
 public:
  OnnxGraph(const NetworkGraph& graph, const NetworkValues& values, const OnnxConfig& config)
      : graph_(graph), values_(values), fold_(config.fold_batch_norm) {
    names_.push_back(kInput);
    for (const NetworkGraph::Node& node : graph.nodes) {
      inputs_.clear();
      for (const size_t value : node.inputs) inputs_.push_back(names_[value]);
      names_.push_back(
          std::visit([&](const auto& operation) { return put(operation); }, node.operation));
    }
    message_.bytes(2, config.name);
    check<std::logic_error>(names_.back() == kOutput,
                            "[onnx] {} ends with {}; expected a linear "
                            "layer",
                            config.name, names_.back());
    message_.message(11, value_info(kInput, {config.image[2], config.image[0], config.image[1]}));
    message_.message(12, value_info(kOutput, {config.classes}));
  }

  const ProtobufMessage& message() const { return message_; }

 private:
  using Attributes = std::initializer_list<ProtobufMessage>;

  /// Appends an operator and returns the name of its output, `name`.
  std::string put_operator(const char* type, const std::string& name,
                           const std::vector<std::string>& inputs, Attributes attributes = {}) {
    ProtobufMessage node;
    for (const std::string& input : inputs) node.bytes(1, input);
    node.bytes(2, name);
    node.bytes(3, name);
    node.bytes(4, type);
    for (const ProtobufMessage& one : attributes) node.message(5, one);
    message_.message(1, node);
    return name;
  }
  /// An operator with the inputs of the node, named after its type and number.
  std::string put_operator(const char* type, Attributes attributes = {}) {
    return put_operator(type, fmt::format("{}_{}", type, names_.size()), inputs_, attributes);
  }

  std::string put_tensor(const std::string& name, OnnxType type, std::span<const int64_t> sizes,
                         std::span<const std::byte> data) {
    ProtobufMessage tensor;
    for (const int64_t size : sizes) tensor.number(1, size);
    tensor.number(2, static_cast<int64_t>(type));
    tensor.bytes(8, name);
    tensor.bytes(9, {reinterpret_cast<const char*>(data.data()), data.size()});
    message_.message(5, tensor);
    return name;
  }
  std::string put_integers(const std::string& name, const std::vector<int64_t>& values) {
    const int64_t size = std::ssize(values);
    return put_tensor(name, OnnxType::i64, {&size, 1}, std::as_bytes(std::span(values)));
  }
  std::string put_floats(const std::string& name, const std::vector<float>& values) {
    const int64_t size = std::ssize(values);
    return put_tensor(name, OnnxType::f32, {&size, 1}, std::as_bytes(std::span(values)));
  }
  std::string put_weight(const std::string& name, const ExportedTensor& tensor) {
    std::vector<int64_t> sizes;
    for (int i = 0; i < tensor.shape.rank(); ++i) sizes.push_back(tensor.shape[i]);
    return put_tensor(name, OnnxType::f32, sizes, std::as_bytes(std::span(tensor.values)));
  }
  std::string put_parameter(const Parameter& p, std::span<const float> flat) {
    return put_weight(p.name, export_parameter(p, p.in(flat)));
  }

  /// The batch norm that alone reads the value computed last; null if there is none.
  const NetworkGraph::BatchNorm* batch_norm_behind() const {
    const size_t value = names_.size();
    const NetworkGraph::BatchNorm* found = nullptr;
    for (const NetworkGraph::Node& node : graph_.nodes) {
      if (std::ranges::find(node.inputs, value) == node.inputs.end()) continue;
      if (found || !std::holds_alternative<NetworkGraph::BatchNorm>(node.operation)) return nullptr;
      found = &std::get<NetworkGraph::BatchNorm>(node.operation);
    }
    return found;
  }

  std::string put(const NetworkGraph::Conv2d& conv) {
    ConvWeights weights = conv_weights(conv, values_);
    const NetworkGraph::BatchNorm* const norm = fold_ ? batch_norm_behind() : nullptr;
    if (norm) {
      weights = folded(std::move(weights), *norm, values_);
      folded_.push_back(norm->gamma);
    }
    const std::string name = layer_of(*conv.weight);
    std::vector<std::string> inputs{inputs_[0], put_weight(name + ".weight", weights.weight)};
    if (!weights.bias.empty()) inputs.push_back(put_floats(name + ".bias", weights.bias));
    const int64_t k = conv.kernel, s = conv.stride, p = conv.padding;
    return put_operator("Conv", name, inputs,
                        {attribute("kernel_shape", {k, k}), attribute("strides", {s, s}),
                         attribute("pads", {p, p, p, p})});
  }

  std::string put(const NetworkGraph::BatchNorm& norm) {
    if (std::ranges::find(folded_, norm.gamma) != folded_.end()) return inputs_[0];
    return put_operator("BatchNormalization", layer_of(*norm.gamma),
                        {inputs_[0], put_parameter(*norm.gamma, values_.parameters),
                         put_parameter(*norm.beta, values_.parameters),
                         put_parameter(*norm.mean, values_.statistics),
                         put_parameter(*norm.variance, values_.statistics)},
                        {attribute("epsilon", norm.epsilon)});
  }

  std::string put(const NetworkGraph::Linear& linear) {
    const std::string name = layer_of(*linear.weight);
    const bool last = names_.size() == graph_.nodes.size();
    std::string x = inputs_[0];
    if (linear.weight->layout == Layout::linear_nhwc) x = put_flatten(name + ".input", x);
    return put_operator("Gemm", last ? kOutput : name,
                        {x, put_parameter(*linear.weight, values_.parameters),
                         put_parameter(*linear.bias, values_.parameters)},
                        {attribute("transB", int64_t{1})});
  }

  std::string put(const NetworkGraph::Relu&) { return put_operator("Relu"); }
  std::string put(const NetworkGraph::Add&) { return put_operator("Add"); }

  std::string put(const NetworkGraph::GlobalAverage&) {
    const std::string mean = put_operator("GlobalAveragePool");
    return put_flatten(mean + ".flat", mean);
  }

  std::string put(const ops::PoolParams& pool) {
    const int64_t k = pool.kernel, s = pool.stride, p = pool.padding;
    const ProtobufMessage kernel = attribute("kernel_shape", {k, k}),
                          strides = attribute("strides", {s, s}),
                          pads = attribute("pads", {p, p, p, p});
    if (pool.kind == ops::PoolKind::max) return put_operator("MaxPool", {kernel, strides, pads});
    return put_operator("AveragePool",
                        {kernel, strides, pads, attribute("count_include_pad", int64_t{1})});
  }

  std::string put(const NetworkGraph::SubsamplePad& shortcut) {
    const std::string name = fmt::format("Shortcut_{}", names_.size());
    std::string x = inputs_[0];
    if (shortcut.stride > 1)
      x = put_operator("Slice", name + ".kept",
                       {x, put_integers(name + ".starts", {0, 0}),
                        put_integers(name + ".ends", {INT64_MAX, INT64_MAX}),
                        put_integers(name + ".axes", {2, 3}),
                        put_integers(name + ".steps", {shortcut.stride, shortcut.stride})});
    const int64_t extra = shortcut.out - shortcut.in, front = extra / 2;
    return put_operator(
        "Pad", name, {x, put_integers(name + ".pads", {0, front, 0, 0, 0, extra - front, 0, 0})});
  }

  std::string put_flatten(const std::string& name, const std::string& x) {
    return put_operator("Flatten", name, {x}, {attribute("axis", int64_t{1})});
  }

  const NetworkGraph& graph_;
  NetworkValues values_;
  bool fold_;
  std::vector<std::string> names_;        // of the values of the graph
  std::vector<std::string> inputs_;       // of the node at hand
  std::vector<const Parameter*> folded_;  // gamma of the batch norms that are part of convolutions
  ProtobufMessage message_;
};

}  // namespace

std::string onnx_file(const NetworkGraph& graph, const NetworkValues& values,
                      const OnnxConfig& config) {
  ProtobufMessage opset, model;
  opset.number(2, kOnnxOpset);
  model.number(1, kOnnxFormat);
  model.bytes(2, "thinwire");
  model.bytes(3, version());
  model.message(8, opset);
  for (const auto& [key, value] : config.metadata) {
    ProtobufMessage entry;
    entry.bytes(1, key);
    entry.bytes(2, value);
    model.message(14, entry);
  }
  model.message(7, OnnxGraph(graph, values, config).message());
  return model.encoded();
}

}  // namespace tw
