// Training on JPEG images and record files, with pretrained weights and gradient accumulation.
#include <fstream>

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

std::string train_images(const TempFolder& folder, const std::string& arguments) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model lenet --lr 0.02 {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments);
}

/// Options for a folder of JPEG images, cropped to 32 x 32.
std::string jpeg_images(const fs::path& data) {
  return fmt::format("--dataset imagefolder --data-dir {} --image-size 32 --batch-size 4 ",
                     data.string());
}

std::string pack(const std::string& arguments) {
  return fs::path(TW_TRAIN).replace_filename("pack").string() + " " + arguments;
}

TEST(JpegTraining, FolderAndRecordFileGiveTheSameBits) {
  const TempFolder folder;
  const fs::path data = folder / "data", records = folder / "data.records";
  test::write_image_folder(data, 2, 16, 6);
  const Ended packed =
      run_well(pack(fmt::format("--data-dir {} --output {}", data.string(), records.string())));
  EXPECT_TRUE(packed.says("32 training and 12 validation images")) << packed.output;
  const std::string run = "--epochs 3 --workers 2 --loader-threads 2 ";
  for (const auto& [from, name] : {std::pair{data, "folder"}, {records, "records"}}) {
    run_well(train_images(folder, jpeg_images(from) + run + "--name " + name));
  }
  EXPECT_EQ(weights_hash(folder / "folder"), weights_hash(folder / "records"));
  run_well(train_images(folder, jpeg_images(records) + run + "--shuffle shards --name shards"));
}

TEST(JpegTraining, SubFoldersAreReadAndWhatIsNotIsCounted) {
  const TempFolder folder;
  const fs::path data = folder / "data";
  test::write_image_folder(data, 2, 4, 2);
  fs::create_directories(data / "train/n00000001/more");
  fs::rename(data / "train/n00000001/0003.JPEG", data / "train/n00000001/more/0003.JPEG");
  test::write_bytes(data / "train/n00000001/more/notes.txt", {});
  const std::string says = "not read: 1 without the extension of an image (" +
                           (data / "train/n00000001/more/notes.txt").string() + ")";
  const fs::path doctor = fs::path(TW_TRAIN).replace_filename("doctor");
  for (const auto& [command, images] :
       {std::pair{train_images(folder, jpeg_images(data) + "--dry-run"), "8 training images"},
        {pack(fmt::format("--data-dir {} --output {}", data.string(), (folder / "r").string())),
         "8 training and 4 validation images"},
        {fmt::format("{} --seconds 0 --data-dir {}", doctor.string(), data.string()),
         "8 training and 4 validation images"}}) {
    const Ended ended = run_command(command);
    EXPECT_TRUE(ended.says(images) && ended.says(says)) << ended.output;
  }
}

TEST(JpegTraining, ResumesInTheMiddleOfAnEpochWithAccumulationAndJitter) {
  const TempFolder folder;
  test::write_image_folder(folder / "data", 2, 24, 4);
  const std::string run = jpeg_images(folder / "data") +
                          "--workers 2 --accumulate 2 --colour-jitter 0.4 --sparsifier topk "
                          "--epochs 3 --checkpoint-steps 1 ";
  run_well(train_images(folder, run + "--name whole"));
  run_well(train_images(folder, run + "--max-steps 4 --name parts"));
  const Ended resumed = run_well(train_images(folder, run + "--name parts --resume auto"));
  EXPECT_TRUE(resumed.says("resuming")) << resumed.output;
  EXPECT_EQ(weights_hash(folder / "whole"), weights_hash(folder / "parts"));
}

TEST(JpegTraining, ARecordFileTruncatedDuringTheRunIsNamed) {
  const TempFolder folder;
  test::write_image_folder(folder / "data", 2, 40, 4);
  const fs::path records = folder / "data.records";
  const auto data = (folder / "data").string();
  run_well(pack(fmt::format("--data-dir {} --output {}", data, records.string())));
  const std::string run = jpeg_images(records) + "--epochs 100000 --name cut";
  expect_end(
      fmt::format("({} & until [ -s {}/cut/metrics.csv ] && [ $(wc -l <{}/cut/metrics.csv) -gt 1 "
                  "]; do sleep 0.05; done; truncate -s 4096 {}; wait $!)",
                  train_images(folder, run), folder.path().string(), folder.path().string(),
                  records.string()),
      2, "data.records was truncated while it was in use");
}

TEST(Pack, AnUnwritableOutputIsAUserError) {
  const TempFolder folder;
  test::write_image_folder(folder / "data", 2, 2, 2);
  const auto packed = [&](const std::string& output) {
    return run_command(
        pack(fmt::format("--data-dir {} --output {}", (folder / "data").string(), output)));
  };
  for (const auto& [output, says] :
       {std::pair{folder.path().string(), "is not a file"},
        std::pair{std::string("/dev/null"), "/dev/null is not a file"},
        std::pair{(folder / "none/records").string(), "there is no folder"}}) {
    const Ended ended = packed(output);
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_TRUE(ended.says(says)) << ended.output;
  }
}

TEST(Pretrained, LoadsEveryBitOfTheWeights) {
  const TempFolder folder;
  run_well(train_images(folder, "--max-steps 5 --name first"));
  const fs::path weights = folder / "first/checkpoints/step-00000005/model.safetensors";
  const std::string from = "--pretrained " + weights.string();
  const Ended copied = run_well(train_images(folder, from + " --epochs 0 --seed 2 --name copied"));
  EXPECT_EQ(weights_hash(folder / "copied"), weights_hash(folder / "first"));
  EXPECT_TRUE(fs::exists(folder / "copied/checkpoints/step-00000000/model.safetensors"));

  expect_end(train_images(folder, from + " --eval-only --name none"), 0, "top-1 ");
  EXPECT_FALSE(fs::exists(folder / "none")) << "an evaluation leaves no run folder";
  run_well(
      train_images(folder, fmt::format("--eval-only --resume {}", (folder / "first").string())));
  EXPECT_EQ(run_command(train_images(folder, "--eval-only")).code, 2);

  // a run started from --pretrained resumes from its checkpoint, with or without that flag
  const std::string began = "--max-steps 3 --checkpoint-steps 2 ";
  run_well(train_images(folder, began + from + " --name begun"));
  const Ended again = run_well(train_images(folder, began + from + " --name begun --resume auto"));
  const Ended gone = run_well(
      train_images(folder, fmt::format("--max-steps 5 --resume {}", (folder / "begun").string())));
  EXPECT_TRUE(again.says("resuming") && gone.says("resuming")) << again.output << gone.output;

  const Ended other = run_command(train_images(folder, from + " --classes 12 --name other"));
  EXPECT_EQ(other.code, 2);
  EXPECT_TRUE(other.says("the last layer has 10 outputs, this network wants 12: ") &&
              other.says("--reset-head starts a new last layer"))
      << other.output;
  EXPECT_EQ(run_command(train_images(folder, "--classes 3 --name few")).code, 2);
}

/// Two micro-batches of 8 equal one batch of 16 up to rounding, since LeNet has no batch norm.
TEST(Accumulate, MatchesTheLargerBatch) {
  const TempFolder folder;
  const std::string run = "--max-steps 20 --checkpoint-every 0 ";
  run_well(train_images(folder, run + "--batch-size 16 --name whole"));
  run_well(train_images(folder, run + "--batch-size 8 --accumulate 2 --name parts"));
  const auto loss = [&](const char* name) {
    std::ifstream in(folder / name / "summary.json");
    return Json::parse(in)["val_loss"].get<double>();
  };
  EXPECT_NEAR(loss("parts"), loss("whole"), 1e-4);
  const Ended plan =
      run_command(train_images(folder, run + "--batch-size 8 --accumulate 2 --dry-run"));
  EXPECT_TRUE(plan.says("batch 2 x 8 each")) << plan.output;
}

TEST(Recompute, KeepsEveryBit) {
  const TempFolder folder;
  const std::string run = "--model resnet20 --max-steps 3 --batch-size 8 --val-size 100 ";
  for (const char* choice : {"none", "blocks"}) {
    run_well(train_images(folder, fmt::format("{} --recompute {} --name {}", run, choice, choice)));
  }
  EXPECT_EQ(weights_hash(folder / "none"), weights_hash(folder / "blocks"));
}

}  // namespace
}  // namespace tw::test
