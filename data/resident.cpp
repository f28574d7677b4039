#include "data/resident.h"

#include "engine/core/buffer.h"

namespace tw {

std::unique_ptr<ResidentData> ResidentData::create(Context& ctx, const Dataset& dataset) {
  return resident_data_dispatch(ctx.device(), ctx, dataset);
}

size_t ResidentData::bytes(const Dataset& dataset) {
  return dataset.size() *
         (static_cast<size_t>(dataset.image.numel()) + sizeof(int32_t) + sizeof(uint32_t));
}

bool ResidentData::fits(const Context& ctx, const Dataset& dataset) {
  return resident_data_dispatch.has(ctx.device()) && dataset.supports_resident() &&
         bytes(dataset) <= free_memory(ctx.device()) / 2;
}

}  // namespace tw
