// Reads what tests check of an ONNX file.
#pragma once

#include <algorithm>
#include <cstring>

#include "tests/support/protobuf_fields.h"

namespace tw::test {

struct OnnxReader {
  struct Node {
    std::string type, output;
    std::vector<std::string> inputs;
    std::map<std::string, std::vector<int64_t>> lists{};  ///< attributes of integers
    std::map<std::string, float> reals{};

    /// An attribute; `missing` if the node has none.
    std::vector<int64_t> list(const std::string& name,
                              const std::vector<int64_t>& missing = {}) const {
      const auto found = lists.find(name);
      return found == lists.end() ? missing : found->second;
    }
    float real(const std::string& name, float missing) const {
      const auto found = reals.find(name);
      return found == reals.end() ? missing : found->second;
    }
  };
  struct Tensor {
    std::vector<int64_t> sizes;
    int64_t type = 0;
    std::string data;
  };

  explicit OnnxReader(std::string_view file) {
    const ProtobufFields model(file);
    format = model.text(1);
    opset = ProtobufFields(model.text(8)).text(2);
    for (const std::string& entry : model[14])
      metadata[ProtobufFields(entry).text(1)] = ProtobufFields(entry).text(2);
    const ProtobufFields graph(model.text(7));
    for (const std::string& bytes : graph[1]) {
      const ProtobufFields node(bytes);
      nodes.push_back({node.text(4), node.text(2), node[1]});
      for (const std::string& attribute : node[5]) add_attribute(nodes.back(), attribute);
    }
    for (const std::string& bytes : graph[5]) {
      const ProtobufFields tensor(bytes);
      std::vector<int64_t> sizes;
      for (const std::string& size : tensor[1]) sizes.push_back(std::stoll(size));
      EXPECT_FALSE(tensors.contains(tensor.text(8))) << tensor.text(8);
      tensors[tensor.text(8)] = {sizes, std::stoll(tensor.text(2)), tensor.text(9)};
    }
    input = ProtobufFields(graph.text(11)).text(1);
    output = ProtobufFields(graph.text(12)).text(1);
  }
  static void add_attribute(Node& node, const std::string& bytes) {
    const ProtobufFields attribute(bytes);
    const std::string name = attribute.text(1), kind = attribute.text(20);
    if (kind == "1") {
      std::memcpy(&node.reals[name], attribute.text(2).data(), sizeof(float));
    } else {
      EXPECT_TRUE(kind == "2" || kind == "7") << name << " is of kind " << kind;
      for (const std::string& value : attribute[kind == "2" ? 3 : 8])
        node.lists[name].push_back(std::stoll(value));
    }
  }
  size_t count(const std::string& type) const {
    return static_cast<size_t>(std::ranges::count(nodes, type, &Node::type));
  }

  std::string format, opset, input, output;
  std::map<std::string, std::string> metadata;
  std::vector<Node> nodes;
  std::map<std::string, Tensor> tensors;
};

}  // namespace tw::test
