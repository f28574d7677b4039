// Names that stand for a network by the size of the images, and notes on unusual sizes.
#include "models/registry.h"

#include <gtest/gtest.h>

#include "models/model.h"

namespace tw::test {
namespace {

const Shape kSmall{32, 32, 3}, kLarge{224, 224, 3};

TEST(NetworkFor, VggIsTheNetworkOfTheSize) {
  for (const char* depth : {"11", "13", "16", "19"}) {
    const std::string plain = fmt::format("vgg{}", depth), bn = plain + "_bn";
    for (const std::string& name : {plain, bn}) {
      EXPECT_EQ(network_for(name, kLarge), name + "_imagenet");
      EXPECT_EQ(network_for(name, kSmall), plain + "_cifar");
      EXPECT_EQ(network_for(name, {160, 160, 3}), plain + "_cifar");
    }
    EXPECT_EQ(network_for(plain + "_cifar", kLarge), plain + "_cifar");
  }
  EXPECT_EQ(network_for("resnet18", kSmall), "resnet18");
}

TEST(NetworkFor, IsTheNetworkThatIsBuilt) {
  const auto parameters = [](const std::string& model, const ModelSpec& spec) {
    return Model(model, spec).arena().size();
  };
  const ModelSpec photographs{.image = kLarge, .classes = 1000};
  EXPECT_EQ(parameters("vgg16", photographs), parameters("vgg16_imagenet", photographs));
  EXPECT_EQ(parameters("vgg16_bn", photographs), parameters("vgg16_bn_imagenet", photographs));
  EXPECT_EQ(parameters("vgg16_bn", {}), parameters("vgg16_cifar", {}));
  EXPECT_EQ(parameters("vgg16_cifar", photographs), 15'236'136u);
}

TEST(VggAndAlexNet, LinearLayersBeginWithASmallDeviation) {
  for (auto [name, size] : {std::pair("vgg16", kSmall), {"vgg16", kLarge}, {"alexnet", kLarge}}) {
    const Model model(name, {.image = size});
    for (const Parameter& p : model.arena().parameters()) {
      const bool linear = p.name.starts_with("classifier") && p.name.ends_with(".weight");
      EXPECT_EQ(p.deviation == 0.01f, linear) << p.name;
    }
  }
}

TEST(SizeNote, NamesTheNetworkThatANameStandsFor) {
  EXPECT_EQ(size_note("vgg16", kLarge), "vgg16 is vgg16_imagenet for images of 224 x 224");
  EXPECT_EQ(size_note("vgg16", kSmall), "vgg16 is vgg16_cifar for images of 32 x 32");
  EXPECT_EQ(size_note("vgg16_imagenet", kLarge), "");
}

TEST(SizeNote, SaysThatImagesAreUnusual) {
  const std::string small = size_note("resnet18", kSmall), large = size_note("resnet20", kLarge);
  // a new model adds its name to the list
  EXPECT_TRUE(small.starts_with(
      "resnet18 is made for images of at least 96 x 96; these are 32 x 32 (for them: "))
      << small;
  EXPECT_TRUE(large.starts_with(
      "resnet20 is made for images of up to 64 x 64; these are 224 x 224 (for them: "))
      << large;
  for (const char* model : {"lenet", "resnet110", "resnet20"}) {
    EXPECT_NE(small.find(model, small.find('(')), std::string::npos) << model;
    EXPECT_EQ(large.find(model, large.find('(')), std::string::npos) << model;
  }
  for (const char* model : {"resnet152", "resnet18", "resnet34", "resnet50"}) {
    EXPECT_EQ(small.find(model, small.find('(')), std::string::npos) << model;
    EXPECT_NE(large.find(model, large.find('(')), std::string::npos) << model;
  }
  for (const char* model : {"resnet20", "lenet", "mlp"}) EXPECT_EQ(size_note(model, kSmall), "");
  for (const char* model : {"resnet50", "alexnet", "mlp"}) EXPECT_EQ(size_note(model, kLarge), "");
}

}  // namespace
}  // namespace tw::test
