// The names of the classes in the files of a run, and data whose classes are not those of the
// weights.
#include "engine/io/safetensors.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

const char* const kClasses[] = {"ant", "bee", "cat"};

/// The images of three classes, ant, bee and cat, and a run on them.
class ClassNamesOfRuns : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = new TempFolder;
    write_image_folder(*folder_ / "data", 3, 8, 6);
    for (int c = 0; c < 3; ++c) rename(*folder_ / "data", fmt::format("n{:08}", c), kClasses[c]);
    const Ended ended = train("data", "--max-steps 30 --lr 0.002 --warmup-epochs 0 --name run");
    EXPECT_EQ(ended.code, 0) << ended.output;
  }
  static void TearDownTestSuite() { delete folder_; }

  static Ended train(const std::string& data, const std::string& arguments) {
    return run_command(
        fmt::format("{} --output-dir {} --precision f32 --threads-per-rank 1 --model lenet "
                    "--dataset imagefolder "
                    "--image-size 32 --batch-size 4 --eval-every never --data-dir {} {}",
                    TW_TRAIN, folder_->path().string(), (*folder_ / data).string(), arguments));
  }
  static void rename(const fs::path& data, const std::string& from, const std::string& to) {
    for (const char* half : {"train", "val"}) fs::rename(data / half / from, data / half / to);
  }
  /// A copy of the data under this name.
  static fs::path copy(const std::string& name) {
    fs::path data = *folder_ / name;
    fs::remove_all(data);
    fs::copy(*folder_ / "data", data, fs::copy_options::recursive);
    return data;
  }
  static void remove(const fs::path& data, const std::string& name) {
    for (const char* half : {"train", "val"}) fs::remove_all(data / half / name);
  }
  static fs::path run() { return *folder_ / "run"; }
  static fs::path weights() { return run() / "checkpoints/step-00000030/model.safetensors"; }

  struct Result {
    double top1 = -1, loss = -1;
  };
  /// The line that --eval-only prints: `top-1 0.5556  loss 0.9876 on ...`, of three classes.
  static Result result_of(const Ended& ended) {
    EXPECT_EQ(ended.code, 0) << ended.output;
    Result result;
    const size_t at = ended.output.rfind("top-1 ");
    EXPECT_NE(at, std::string::npos) << ended.output;
    if (at != std::string::npos)
      std::sscanf(&ended.output[at], "top-1 %lf loss %lf", &result.top1, &result.loss);
    return result;
  }
  static Result validated(const std::string& data, const std::string& map = "") {
    return result_of(train(
        data, fmt::format("--eval-every 1 --eval-only --pretrained {} {}", run().string(), map)));
  }

  static TempFolder* folder_;
};
TempFolder* ClassNamesOfRuns::folder_ = nullptr;

TEST_F(ClassNamesOfRuns, AreInItsFiles) {
  const Json names = kClasses;
  EXPECT_EQ(Json::parse(text_of(run() / "config.json"))["run"]["classes"], names);
  EXPECT_EQ(Json::parse(text_of(run() / "summary.json"))["classes"], names);
  EXPECT_EQ(SafetensorsReader(weights()).metadata().at("classes"), names.dump());
  const std::string onnx = (*folder_ / "run.onnx").string();
  run_well(fmt::format("{}/export {} --output {}", TW_BIN, run().string(), onnx));
  EXPECT_NE(text_of(onnx).find(R"(["ant","bee","cat"])"), std::string::npos);
}

TEST_F(ClassNamesOfRuns, OtherClassesAreRefused) {
  rename(copy("renamed"), "bee", "wasp");
  remove(copy("fewer"), "bee");
  fs::copy(copy("more") / "train/cat", *folder_ / "more/train/dog");
  fs::copy(*folder_ / "more/val/cat", *folder_ / "more/val/dog");
  const std::string from = run().string();
  for (const auto& [data, text] :
       {std::pair{"renamed", R"(class 1 is "cat" in the data, "bee" in the weights ("bee" is)"},
        {"fewer", R"(class 1 is "cat" in the data, "bee" in the weights ("bee" is missing))"},
        {"more", R"(class 3, "dog", is not one of the weights)"}})
    for (const std::string& how :
         {"--eval-every 1 --eval-only --resume " + from,
          "--eval-every 1 --eval-only --pretrained " + from,
          "--name no --max-steps 1 --pretrained " + from, "--max-steps 31 --resume " + from,
          "--dry-run --max-steps 31 --resume " + from}) {
      const Ended ended = train(data, how);
      EXPECT_EQ(ended.code, 2) << how << ended.output;
      EXPECT_TRUE(ended.says(text) && ended.says("--class-map names maps")) << ended.output;
      EXPECT_FALSE(fs::exists(*folder_ / "no"));
    }
  const Ended reset =
      train("renamed", "--max-steps 1 --name reset --reset-head --pretrained " + from);
  EXPECT_EQ(reset.code, 0) << reset.output;
}

TEST_F(ClassNamesOfRuns, AMapGivesTheResultOfTheRightLabels) {
  const Result right = validated("data");
  EXPECT_GT(right.loss, 0);
  // the folders are sorted: cat is class 1 and wasp 2, then ant is the last
  rename(copy("renamed"), "bee", "wasp");
  rename(copy("moved"), "ant", "zebra");
  for (const auto& [data, map] : {std::pair{"renamed", "wasp=bee"}, {"moved", "zebra=ant,names"}}) {
    const Result mapped = validated(data, std::string("--class-map ") + map);
    EXPECT_NEAR(mapped.top1, right.top1, 1e-4);
    EXPECT_NEAR(mapped.loss, right.loss, 1e-4);
  }
}

TEST_F(ClassNamesOfRuns, AMapValidatesASubsetOfTheClasses) {
  // each class has as many images and is in two of three pairs: the pairs' mean is that of all
  const Result all = validated("data");
  Result sum{0, 0};
  for (const char* missing : kClasses) {
    remove(copy("pair"), missing);
    const Result pair = validated("pair", "--class-map names");
    sum.top1 += pair.top1;
    sum.loss += pair.loss;
  }
  EXPECT_NEAR(sum.top1 / 3, all.top1, 2e-4);
  EXPECT_NEAR(sum.loss / 3, all.loss, 2e-4);
}

TEST_F(ClassNamesOfRuns, AMappedRunKeepsTheNamesOfTheWeightsAndResumes) {
  rename(copy("moved"), "ant", "zebra");
  const Ended begun = train(
      "moved", "--max-steps 1 --name mapped --class-map zebra=ant --pretrained " + run().string());
  ASSERT_EQ(begun.code, 0) << begun.output;
  EXPECT_EQ(Json::parse(text_of(*folder_ / "mapped/config.json"))["run"]["classes"],
            Json(kClasses));
  const Ended resumed = train("moved", "--max-steps 2 --resume " + (*folder_ / "mapped").string());
  EXPECT_EQ(resumed.code, 0) << resumed.output;
  EXPECT_TRUE(resumed.says("resuming")) << resumed.output;
  const Ended without = train("moved", "--class-map names --max-steps 1 --name no");
  EXPECT_EQ(without.code, 2);
  EXPECT_TRUE(without.says("class-map needs the weights of --pretrained or --resume"));
}

TEST_F(ClassNamesOfRuns, WeightsWithoutNamesAreTakenWithANote) {
  fs::copy(run(), *folder_ / "old", fs::copy_options::recursive);
  const fs::path file = *folder_ / "old/checkpoints/step-00000030/model.safetensors";
  {
    const SafetensorsReader reader(weights());
    SafetensorsWriter writer;
    for (const auto& [name, tensor] : reader.tensors()) writer.add(name, tensor);
    for (const char* key : {"format", "thinwire", "image", "normalisation"})
      writer.metadata(key, reader.metadata().at(key));
    writer.write(file);
  }
  const std::string note = "names no classes: output i is taken for class i of the data";
  for (const std::string& how :
       {"--pretrained " + file.string(), "--resume " + (*folder_ / "old").string()}) {
    const Ended ended = train("data", "--eval-every 1 --eval-only " + how);
    EXPECT_NEAR(result_of(ended).loss, validated("data").loss, 1e-4);
    EXPECT_TRUE(ended.says(file.string() + " " + note)) << ended.output;
    const Ended mapped = train("data", "--eval-every 1 --eval-only --class-map names " + how);
    EXPECT_EQ(mapped.code, 2) << mapped.output;
    EXPECT_TRUE(mapped.says("class-map has nothing to map to")) << mapped.output;
  }
  EXPECT_FALSE(train("data", "--eval-every 1 --eval-only --resume " + run().string()).says(note));
}

TEST_F(ClassNamesOfRuns, RanksWithOtherImagesAreRefused) {
  const std::string mpirun = TW_MPIRUN;
  if (mpirun.empty()) GTEST_SKIP() << "built without MPI";
  const auto ranks = [&](const std::string& other) {
    const std::string options = fmt::format(
        "{} --output-dir {} --model lenet --dataset imagefolder --image-size 32 --batch-size 4 "
        "--max-steps 1 --threads-per-rank 1 --name no --data-dir {}/",
        TW_TRAIN, folder_->path().string(), folder_->path().string());
    return run_command(fmt::format("{0} -n 1 {1}data : -n 1 {1}{2}", mpirun, options, other));
  };
  const fs::path data = *folder_ / "data", swapped = copy("swapped");
  for (const auto& [from, to] : {std::pair{"ant", "x"}, {"bee", "ant"}, {"x", "bee"}})
    fs::rename(swapped / "train" / from, swapped / "train" / to);  // the names of all files stay
  rename(copy("renamed"), "bee", "wasp");
  for (const fs::path& folder : {data, swapped})
    ASSERT_EQ(
        run_command(fmt::format("{0}/pack {1} --output {1}.records", TW_BIN, folder.string())).code,
        0);
  const std::string other_image = fmt::format(
      "[setup] training image 0 is ant/0000.JPEG with label 0 and {} bytes on rank 1; training "
      "image 0 is ant/0000.JPEG with label 0 and {} bytes on rank 0",
      fs::file_size(data / "train/bee/0000.JPEG"), fs::file_size(data / "train/ant/0000.JPEG"));
  for (const auto& [other, text] :
       {std::pair<std::string, std::string>{
            "renamed", R"([setup] class 1 is "cat" on rank 1; class 1 is "bee" on rank 0)"},
        {"swapped", other_image},
        {"swapped.records", other_image}}) {
    const Ended ended = ranks(other);
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_TRUE(ended.says(text)) << ended.output;
  }
  // one machine may have the folder and another its record file
  const Ended same = ranks("data.records");
  EXPECT_EQ(same.code, 0) << same.output;
}

}  // namespace
}  // namespace tw::test
