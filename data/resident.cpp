#include "data/resident.h"

#include "engine/core/buffer.h"

namespace tw {

constinit Bodies<ResidentDataFactory> resident_data_bodies{"resident_data"};

std::unique_ptr<ResidentData> ResidentData::create(Context& ctx, const Dataset& dataset) {
  return resident_data_bodies(ctx.device(), ctx, dataset);
}

size_t ResidentData::bytes(const Dataset& dataset) {
  return dataset.size() *
         (static_cast<size_t>(dataset.image.numel()) + sizeof(int32_t) + sizeof(uint32_t));
}

bool ResidentData::fits(const Context& ctx, const Dataset& dataset) {
  return resident_data_bodies.has(ctx.device()) && dataset.in_memory() &&
         bytes(dataset) <= free_memory(ctx.device()) / 2;
}

}  // namespace tw
