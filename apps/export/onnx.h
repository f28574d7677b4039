// ONNX: a network as a graph of standard operators with its weights. https://onnx.ai
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "apps/export/folding.h"

namespace tw {

/// Version of the operators, and of the file format that belongs to it.
inline constexpr int64_t kOnnxOpset = 13, kOnnxFormat = 7;
/// How a file begins: with the field of the version of its format.
inline constexpr std::string_view kOnnxStart = "\x08";

struct OnnxConfig {
  std::string name;  ///< of the network
  Shape image;       ///< H, W, C of one input
  int64_t classes = 0;
  bool fold_batch_norm = false;
  std::map<std::string, std::string> metadata{};
};

/// An ONNX file with the input `input` (N, C, H, W), the output `logits` (N, classes) and any
/// number N of images; all values are float. Weights have torchvision's names.
std::string onnx_file(const NetworkGraph& graph, const NetworkValues& values,
                      const OnnxConfig& config);

}  // namespace tw
