// The network and the image size of a run on image files that names none.
#include "apps/train/config.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"
#include "tests/support/train_config.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

/// A folder with two class folders, each with images of these sizes.
void write_classes(const fs::path& folder, const std::vector<std::pair<int, int>>& sizes) {
  for (const char* name : {"a", "b"}) {
    fs::create_directories(folder / name);
    for (size_t i = 0; i < sizes.size(); ++i)
      write_bytes(folder / name / fmt::format("{}.jpg", i),
                  noise_jpeg(i, sizes[i].first, sizes[i].second));
  }
}

TEST(ModelChoice, FollowsTheShorterSideOfTheImages) {
  for (const auto& [side, model, image_size] : {std::tuple{8, "resnet20", 32},
                                                {47, "resnet20", 32},
                                                {48, "resnet20", 64},
                                                {95, "resnet20", 64},
                                                {96, "resnet18", 128},
                                                {191, "resnet18", 128},
                                                {192, "resnet18", 224},
                                                {400, "resnet18", 224}}) {
    const TempFolder folder;
    write_classes(folder.path(), {{side, 500}, {500, side}, {side, side}});
    const TrainConfig config = train_config({"--data-dir", folder.path().string()});
    EXPECT_EQ(config.model, model) << side;
    EXPECT_EQ(config.image_size, image_size) << side;
    EXPECT_EQ(
        config.model_reason,
        fmt::format("no --model given: {} at --image-size {}, for 6 images whose shorter side "
                    "is about {} pixels",
                    model, image_size, side));
  }
}

TEST(ModelChoice, IsThatOfMostImages) {
  const TempFolder folder;
  write_classes(folder.path(), {{300, 310}, {320, 300}, {305, 300}, {20, 500}});
  write_bytes(folder / "a/0.jpg", {});  // damaged
  EXPECT_EQ(train_config({"--data-dir", folder.path().string()}).model, "resnet18");
  for (const char* file :
       {"a/1.jpg", "a/2.jpg", "a/3.jpg", "b/0.jpg", "b/1.jpg", "b/2.jpg", "b/3.jpg"})
    write_bytes(folder / file, {});
  EXPECT_THROW(train_config({"--data-dir", folder.path().string()}), UserError);
}

TEST(ModelChoice, OfManyPhotographsIsALargerNetwork) {
  const TempFolder folder;
  write_classes(folder / "data", {{200, 200}});
  // a class has all files of the folders that its links lead to
  fs::create_directories(folder / "many");
  for (int i = 0; i < 1'000; ++i)
    fs::create_hard_link(folder / "data/a/0.jpg", folder / fmt::format("many/{}.jpg", i));
  for (int i = 0; i < 99; ++i)
    fs::create_symlink(folder / "many", folder / fmt::format("data/a/{}", i));
  const auto model = [&] { return train_config({"--data-dir", (folder / "data").string()}).model; };
  EXPECT_EQ(model(), "resnet18") << "99,002 images";
  fs::create_symlink(folder / "many", folder / "data/a/99");
  EXPECT_EQ(model(), "resnet50") << "100,002 images";
}

TEST(ModelChoice, TheRateFollowsTheBatch) {
  const TempFolder folder;
  write_classes(folder.path(), {{40, 40}, {40, 40}});
  const auto rate = [&](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--data-dir", folder.path().string()});
    return train_config(flags).lr;
  };
  EXPECT_EQ(rate({}), 0.0125);
  EXPECT_EQ(rate({"--batch-size", "64"}), 0.025);
  EXPECT_EQ(rate({"--batch-size", "512"}), 0.1);
  EXPECT_EQ(rate({"--lr", "0.3"}), 0.3);
  EXPECT_EQ(rate({"--model", "resnet20"}), 0.0125);
  EXPECT_EQ(train_config({"--data-dir", folder.path().string(), "--model", "resnet20"}).lr_reason,
            "0.1 for 256 images, in proportion to --batch-size 32");
  std::ofstream(folder / "weights.safetensors") << std::string("\2\0\0\0\0\0\0\0{}", 10);
  const std::string weights = (folder / "weights.safetensors").string();
  EXPECT_EQ(rate({"--model", "resnet20", "--pretrained", weights}), 0.0125);
  EXPECT_EQ(rate({"--model", "lenet", "--pretrained", weights}), 0.01 / 8);
}

TEST(ModelChoice, OneClassIsRefused) {
  const TempFolder folder;
  write_classes(folder.path(), {{40, 40}, {40, 40}});
  std::filesystem::remove_all(folder / "b");
  const Ended ended =
      run_command(fmt::format("{} --dry-run --data-dir {}", TW_TRAIN, folder.path().string()));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.says("error: [data] " + folder.path().string() +
                         " has images of one class; expected at least two\n"))
      << ended.output;
}

TEST(ModelChoice, LeavesWhatIsGiven) {
  const TempFolder folder;
  write_classes(folder.path(), {{300, 300}, {300, 300}});
  const std::string dir = folder.path().string();
  const TrainConfig small = train_config({"--data-dir", dir, "--image-size", "32"});
  EXPECT_EQ(small.model, "resnet20");
  EXPECT_EQ(small.image_size, 32);
  const TrainConfig named = train_config({"--data-dir", dir, "--model", "resnet20"});
  EXPECT_EQ(named.model, "resnet20");
  EXPECT_EQ(named.image_size, 0);
  EXPECT_EQ(named.model_reason, "");
  const TrainConfig shapes = train_config({});
  EXPECT_EQ(shapes.model, "resnet20");
  EXPECT_EQ(shapes.model_reason, "");
}

TEST(ModelChoice, IsRecordedAsIfGivenAndKeptByAResume) {
  const TempFolder folder;
  write_classes(folder / "photos", {{32, 40}, {40, 32}, {32, 32}, {36, 32}});
  const auto train = [&](const std::string& arguments) {
    return run_command(
        fmt::format("cd {} && {} --batch-size 2 --threads-per-rank 1 --precision f32 "
                    "--eval-every never {}",
                    folder.path().string(), TW_TRAIN, arguments));
  };
  const auto config_of = [&](const std::string& run) {
    return Json::parse(text_of(folder / "runs" / run / "config.json"));
  };
  const Ended ended = train("--data-dir photos --workers 2 --max-steps 1 --name chosen");
  ASSERT_EQ(ended.code, 0) << ended.output;
  EXPECT_TRUE(ended.says("no --model given: resnet20 at --image-size 32, for 8 images"));
  ASSERT_EQ(train("--data-dir photos --workers 2 --max-steps 1 --name given --model resnet20 "
                  "--image-size 32 --lr 0.00078125")
                .code,
            0);
  Json chosen = config_of("chosen"), given = config_of("given");
  for (Json* one : {&chosen, &given})
    for (const char* other : {"run", "name"}) one->erase(other);
  EXPECT_EQ(chosen, given);
  EXPECT_EQ(weights_hash(folder / "runs/chosen"), weights_hash(folder / "runs/given"));
  // as if the folder had become one of photographs
  write_classes(folder / "photos", {{320, 400}, {400, 320}, {320, 320}, {360, 320}});
  for (const char* resume :
       {"--resume runs/chosen", "--resume auto --name chosen --data-dir photos"}) {
    const Ended resumed =
        train(fmt::format("{} --workers 2 --max-steps {}", resume, resume[9] == 'r' ? 2 : 3));
    EXPECT_EQ(resumed.code, 0) << resumed.output;
    EXPECT_FALSE(resumed.says("no --model given")) << resumed.output;
    EXPECT_EQ(config_of("chosen")["image_size"], 32);
  }
}

TEST(ModelChoice, IsThatOfTheWeightsAndOfTheRunOfASeed) {
  const TempFolder folder;
  write_classes(folder / "photos", {{32, 40}, {40, 32}, {32, 32}, {36, 32}});
  const auto train = [&](const std::string& arguments) {
    return run_command(fmt::format(
        "cd {} && {} --batch-size 2 --threads-per-rank 1 --precision f32 --data-dir photos {}",
        folder.path().string(), TW_TRAIN, arguments));
  };
  ASSERT_EQ(train("--seeds 1 --max-steps 1 --name chosen").code, 0);
  write_classes(folder / "photos", {{320, 400}, {400, 320}, {320, 320}, {360, 320}});
  const Ended seeds = train("--seeds 1 --max-steps 2 --name chosen --resume auto");
  EXPECT_EQ(seeds.code, 0) << seeds.output;
  const Ended tuned = train("--pretrained runs/chosen-s1 --eval-only");
  EXPECT_EQ(tuned.code, 0) << tuned.output;
  EXPECT_TRUE(tuned.says("no --model given: resnet20 at --image-size 32, as the weights"))
      << tuned.output;
  const Ended named = train("--pretrained runs/chosen-s1 --model resnet20 --eval-only");
  EXPECT_TRUE(named.says("--image-size 32, as the weights")) << named.output;
  EXPECT_TRUE(named.says("images (32, 32, 3)")) << named.output;
  const Ended sized =
      train("--pretrained runs/chosen-s1 --model resnet20 --image-size 40 --dry-run");
  EXPECT_TRUE(sized.says("images (40, 40, 3)")) << sized.output;
}

}  // namespace
}  // namespace tw::test
