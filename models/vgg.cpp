// vgg11 to vgg19 and vgg11_bn to vgg19_bn: the network of that depth for the size of the images.
// At 224 it is torchvision's of the same name (vgg*_imagenet), else the one for small images, which
// has batch norm in either case (vgg*_cifar).
#include "models/model.h"

namespace tw {
namespace {

bool add(int depth, bool batch_norm) {
  const std::string plain = fmt::format("vgg{}", depth), name = plain + (batch_norm ? "_bn" : "");
  const auto network = [plain, name](const Shape& image) {
    const bool large = image[0] / 32 == 7 && image[1] / 32 == 7;
    return large ? name + "_imagenet" : plain + "_cifar";
  };
  const auto factory = [network](ParameterArena& arena, const ModelSpec& spec) {
    return models().find(network(spec.image)).value.make(arena, spec);
  };
  return models().add(
      {name,
       fmt::format("{}_imagenet for images of 224 x 224, else {}_cifar", name, plain),
       {.make = factory, .network = network}});
}

bool add_all() {
  bool added = true;
  for (const int depth : {11, 13, 16, 19})
    for (const bool batch_norm : {false, true}) added = add(depth, batch_norm) && added;
  return added;
}

const bool vgg_registered = add_all();

}  // namespace
}  // namespace tw
