// The parts of the CPU convolution. Included by .cpp files only.
#pragma once

#include "engine/onednn/onednn.h"
#include "engine/ops/conv2d.h"

namespace tw::ops {

using ConvForward = dnnl::convolution_forward::primitive_desc;
using ConvBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

/// The tensors of a convolution as they lie outside: NHWC activations, fp32 OHWI weights.
struct ConvOutside {
  explicit ConvOutside(const Conv2dShape& shape);
  onednn::Desc x, y, w, bias;
};

/// How each pass is computed inside: the algorithm, layout and type that are fastest for the shape
/// and the CPU. Throws UserError where the CPU can do none.
ConvForward choose_forward(const dnnl::engine& engine, const Conv2dShape& shape);
ConvBackwardData choose_backward_data(const dnnl::engine& engine, const Conv2dShape& shape);
ConvBackwardWeights choose_backward_weights(const dnnl::engine& engine, const Conv2dShape& shape);

/// True when backward weights are faster as one computation a thread, each on its own part of the
/// batch, than as one on all threads.
bool splits_batch(const Conv2dShape& shape, int threads);

/// Convolution of images so small that a kernel mostly reads padding: one dense matrix takes all
/// pixels of an input to all pixels of the output, and a forward pass is one product with it.
bool suits_dense_conv2d(const Conv2dShape& shape);
std::unique_ptr<Conv2d> create_dense_conv2d(Context& ctx, const Conv2dShape& shape);

/// Throws UserError when a call's tensor is not what the convolution was made for.
void expect_conv2d_tensor(const char* what, const Tensor& tensor, const Shape& shape, DType dtype);

}  // namespace tw::ops
