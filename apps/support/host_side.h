// HostSide: where ranks exchange. SyncSgd and the collectives work in the host's memory; beside a
// model on a GPU they have a twin of its vectors there, on the CPU the vectors themselves.
#pragma once

#include <optional>

#include "models/model.h"

namespace tw {

class HostSide {
 public:
  HostSide(Context& ctx, Model& model);

  /// For everything that the ranks do together.
  Context& ctx() { return own_ ? *own_ : ctx_; }
  /// The parameters and gradients SyncSgd works on; usable from start() on.
  ParameterArena& arena() { return own_ ? twin_ : model_.arena(); }
  bool beside_gpu() const { return own_.has_value(); }

  /// Allocates the twin; the model has its memory by then.
  void start();
  // Nothing to do on the CPU.
  void fetch_gradients();
  void fetch_values();
  void publish_values();

 private:
  Context& ctx_;
  Model& model_;
  std::optional<Context> own_;
  ParameterArena twin_;
};

}  // namespace tw
