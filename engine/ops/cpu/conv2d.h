// Parts of the CPU convolution. Included by files in cpu/ and by tests only.
#pragma once

#include <string_view>

#include "engine/onednn/onednn.h"
#include "engine/ops/conv2d.h"

namespace tw::ops {

inline size_t unsigned_of(int64_t n) { return static_cast<size_t>(n); }

using ConvForward = dnnl::convolution_forward::primitive_desc;
using ConvBackwardData = dnnl::convolution_backward_data::primitive_desc;
using ConvBackwardWeights = dnnl::convolution_backward_weights::primitive_desc;

/// The tensors of a convolution in their public layout: NHWC activations, fp32 OHWI weights.
struct ConvOutside {
  explicit ConvOutside(const Conv2dShape& shape);
  onednn::Desc x, y, w, bias;
};

/// Implementation of each pass: the algorithm, layout and type that are fastest for the shape and
/// the CPU. Throws UserError when the CPU supports none.
ConvForward choose_forward(const dnnl::engine& engine, const Conv2dShape& shape);
ConvBackwardData choose_backward_data(const dnnl::engine& engine, const Conv2dShape& shape);
ConvBackwardWeights choose_backward_weights(const dnnl::engine& engine, const Conv2dShape& shape);
/// Takes another kernel for oneDNN 2.6's strided 1x1 one for AVX2, which writes beyond its memory.
inline void leave_faulty_kernel(ConvBackwardWeights& desc, int64_t stride) {
  if (stride > 1 && std::string_view(desc.impl_info_str()) == "jit_1x1:avx2") desc.next_impl();
}

/// True when weight gradients are faster with one kernel per thread, each on its part of the batch,
/// than with one kernel on all threads.
bool splits_batch(const Conv2dShape& shape, int threads);

/// Convolution of images so small that a kernel mostly reads padding: one dense matrix maps all
/// input pixels to all output pixels, and a forward pass is one product with it.
bool suits_dense_conv2d(const Conv2dShape& shape);
std::unique_ptr<Conv2d> create_dense_conv2d(Context& ctx, const Conv2dShape& shape);

/// 3 x 3 convolution in fewer products, by the loops of winograd.h.
bool suits_winograd_conv2d(const Conv2dShape& shape);
std::unique_ptr<Conv2d> create_winograd_conv2d(Context& ctx, const Conv2dShape& shape);

}  // namespace tw::ops
