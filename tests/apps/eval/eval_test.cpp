// The program eval: accuracy and confusion of a trained network.
#include <map>

#include "apps/eval/confusion.h"
#include "engine/io/safetensors.h"
#include "tests/support/run_on_images.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

TEST(Confusion, CountsByLabelAndPrediction) {
  Confusion confusion({"a", "b", "c, d"});
  confusion.add(0, std::array{0.7f, 0.2f, 0.1f});
  confusion.add(0, std::array{0.1f, 0.2f, 0.7f});
  confusion.add(1, std::array{0.4f, 0.4f, 0.2f});  // of equal ones, a comes first
  EXPECT_EQ(confusion.images(), 3);
  EXPECT_EQ(confusion.top1(), 1);
  EXPECT_EQ(confusion.top5(), 3);
  EXPECT_EQ(confusion.classes()[0].mistaken, "c, d");
  EXPECT_EQ(confusion.classes()[1].mistakes, 1);
  EXPECT_EQ(confusion.classes()[2].mistakes, 0);
  EXPECT_EQ(confusion.classes()[0].equally_mistaken, 0);
  EXPECT_EQ(confusion.matrix_csv(), "label,a,b,\"c, d\"\na,1,0,1\nb,1,0,0\n\"c, d\",0,0,0\n");
  EXPECT_EQ(confusion.classes_csv(),
            "class,images,predicted,correct,precision,recall\n"
            "a,2,2,1,0.500000,0.500000\nb,1,0,0,,0.000000\n\"c, d\",0,1,0,0.000000,\n");
}

TEST(Confusion, CountsTheClassesTakenAsOften) {
  Confusion confusion({"a", "b", "c", "d"});
  const std::array<std::array<float, 4>, 4> sure{
      {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}}};
  for (const size_t taken : {1, 2, 3, 3, 2, 0}) confusion.add(0, sure[taken]);
  EXPECT_EQ(confusion.classes()[0].mistaken, "c");
  EXPECT_EQ(confusion.classes()[0].mistakes, 2);
  EXPECT_EQ(confusion.classes()[0].equally_mistaken, 1);  // d
}

TEST(Confusion, TopFiveIsTheRankOfTheLabel) {
  Confusion confusion({"a", "b", "c", "d", "e", "f", "g"});
  const std::array row{0.3f, 0.2f, 0.15f, 0.1f, 0.1f, 0.1f, 0.05f};
  for (size_t label = 0; label < row.size(); ++label) confusion.add(label, row);
  EXPECT_EQ(confusion.top1(), 1);
  EXPECT_EQ(confusion.top5(), 5);  // f has the logit of e and comes behind it
  EXPECT_THROW(Confusion(std::vector<std::string>(Confusion::kMostClasses + 1)), UserError);
}

class Eval : public RunOnImages {
 protected:
  static Ended run(const std::string& arguments) { return RunOnImages::run("eval", arguments); }
  static Json summary(const std::string& folder) {
    return Json::parse(text_of(*folder_ / folder / "summary.json"));
  }
};

TEST_F(Eval, AgreesWithTheValidationOfTheRun) {
  const Ended ended = run("runs/run --save predictions.csv");
  ASSERT_EQ(ended.code, 0) << ended.output;
  const Json found = summary("runs/run/eval"), trained = summary("runs/run");
  EXPECT_EQ(found["images"], 18);
  EXPECT_NEAR(found["top1"], trained["val_top1"], 1e-6);
  EXPECT_FALSE(ended.says("top-5")) << "of three classes: " << ended.output;

  // the tables follow from the predictions
  const auto predictions = rows_of("predictions.csv");
  ASSERT_EQ(predictions.size(), 1u + 18);
  EXPECT_EQ(predictions[0],
            (std::vector<std::string>{"image", "label", "prediction", "probability"}));
  std::map<std::pair<std::string, std::string>, int> counts;
  int right = 0;
  for (size_t i = 1; i < predictions.size(); ++i) {
    const auto& row = predictions[i];
    EXPECT_EQ(row[0].substr(0, row[0].find('/')), row[1]);
    EXPECT_TRUE(fs::exists(*folder_ / "data/val" / row[0])) << row[0];
    EXPECT_GT(std::stod(row[3]), 1.0 / 3 - 1e-6);
    ++counts[{row[1], row[2]}];
    right += row[1] == row[2];
  }
  EXPECT_NEAR(found["top1"], right / 18.0, 1e-9);
  const auto matrix = rows_of("runs/run/eval/confusion.csv");
  ASSERT_EQ(matrix.size(), 4u);
  for (size_t label = 1; label < 4; ++label)
    for (size_t other = 1; other < 4; ++other)
      EXPECT_EQ(std::stoi(matrix[label][other]), (counts[{matrix[label][0], matrix[0][other]}]));
}

TEST_F(Eval, MapsClassFoldersByName) {
  ASSERT_EQ(run("runs/run --output-dir whole").code, 0);
  // without the first class, the folders have other numbers
  fs::copy(*folder_ / "data/val", *folder_ / "some", fs::copy_options::recursive);
  fs::remove_all(*folder_ / "some/n00000000");
  const Ended ended = run("runs/run some --output-dir part");
  ASSERT_EQ(ended.code, 0) << ended.output;
  const auto whole = rows_of("whole/confusion.csv"), part = rows_of("part/confusion.csv");
  EXPECT_EQ(part[1], (std::vector<std::string>{"n00000000", "0", "0", "0"}));
  EXPECT_EQ(part[2], whole[2]);
  EXPECT_EQ(part[3], whole[3]);

  fs::rename(*folder_ / "some/n00000001", *folder_ / "some/wasp");
  const Ended unknown = run("runs/run some");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_TRUE(
      unknown.says("error: [eval] --class-map gives classes other names: no class of the "
                   "weights is called \"wasp\"\n"))
      << unknown.output;
  ASSERT_EQ(run("runs/run some --class-map wasp=n00000001,names --output-dir mapped").code, 0);
  EXPECT_FALSE(run("runs/run --output-dir whole").says("replaces"));
  const Ended other = run("runs/run some --class-map wasp=n00000001,names --output-dir whole");
  EXPECT_TRUE(other.says("replaces the evaluation of data, val folder\n")) << other.output;
  EXPECT_EQ(rows_of("mapped/confusion.csv"), part);
}

TEST_F(Eval, OfAFolderWithValTrainIsIgnored) {
  ASSERT_EQ(run("runs/run --output-dir whole").code, 0);
  fs::create_directories(*folder_ / "half/train/other");
  fs::copy(*folder_ / "data/val", *folder_ / "half/val", fs::copy_options::recursive);
  for (const char* arguments : {"half", "half --dataset imagefolder", "half/val/"}) {
    const Ended ended = run(fmt::format("runs/run {} --output-dir found", arguments));
    ASSERT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(rows_of("found/confusion.csv"), rows_of("whole/confusion.csv")) << arguments;
  }
}

TEST_F(Eval, TheBorderOfSmallImagesStays) {
  ASSERT_EQ(
      in_folder(fmt::format("{} --model mlp --dataset shapes --max-steps 2 --eval-every never "
                            "--name small",
                            TW_TRAIN))
          .code,
      0);
  fs::create_directories(*folder_ / "shapes/ring");
  write_bytes(*folder_ / "shapes/ring/a.jpg", noise_jpeg(1, 32, 32));
  ASSERT_EQ(run("runs/small shapes --save eval.csv --output-dir small").code, 0);
  ASSERT_EQ(RunOnImages::run("predict", "runs/small shapes/ --save predict.csv").code, 0);
  const auto evaluated = rows_of("eval.csv"), predicted = rows_of("predict.csv");
  EXPECT_EQ(evaluated[1][2], predicted[1][1]);
  double most = 0;
  for (size_t c = 2; c < predicted[1].size(); ++c)
    most = std::max(most, std::stod(predicted[1][c]));
  EXPECT_NEAR(std::stod(evaluated[1][3]), most, 1e-6);
}

TEST_F(Eval, NumbersThatAreNotFiniteAreAFault) {
  const SafetensorsReader weights(*folder_ /
                                  "runs/run/checkpoints/step-00000030/model.safetensors");
  SafetensorsWriter huge;
  std::vector<std::vector<float>> values;
  for (const auto& [name, tensor] : weights.tensors()) {
    auto& scaled = values.emplace_back();
    for (const float value : tensor.as<float>()) scaled.push_back(value * 1e18f);
    huge.add(name, {scaled.data(), tensor.shape, DType::f32, Device::cpu});
  }
  huge.write(*folder_ / "huge.safetensors");
  for (const char* program : {"eval", "predict"}) {
    const Ended ended = RunOnImages::run(
        program, "huge.safetensors data/val --model lenet --image-size 32 --save no.csv");
    EXPECT_EQ(ended.code, 4) << ended.output;
    EXPECT_TRUE(ended.says("numbers that are not finite")) << ended.output;
    EXPECT_FALSE(fs::exists(*folder_ / "no.csv"));
  }
}

TEST_F(Eval, SaysThatTheImagesOfTheRunHaveChanged) {
  fs::copy(*folder_ / "data/train", *folder_ / "grows", fs::copy_options::recursive);
  const std::string train = fmt::format("{} --eval-every never --threads-per-rank 1", TW_TRAIN);
  ASSERT_EQ(in_folder(train + " --data-dir grows --model lenet --image-size 32 --batch-size 4 "
                              "--max-steps 1 --name grown")
                .code,
            0);
  EXPECT_FALSE(run("runs/grown").says("the run validated on"));
  EXPECT_TRUE(run("runs/grown grows").says("the run trained on most of these images"));
  EXPECT_FALSE(run("runs/grown").says("trained on most"));
  for (const int i : {1, 2, 3, 4, 5, 6, 7, 8, 9})
    write_bytes(*folder_ / "grows/n00000001" / fmt::format("new{}.jpg", i), noise_jpeg(7, 40, 40));
  EXPECT_TRUE(run("runs/grown").says("the run validated on 3 images, this folder now has 4"));
  const Ended resumed = in_folder(train + " --resume runs/grown --max-steps 2");
  EXPECT_TRUE(resumed.says("training and validation images were 21 and 3, are now 29 and 4"))
      << resumed.output;
}

TEST_F(Eval, LeavesOutDamagedImages) {
  fs::copy(*folder_ / "data/val", *folder_ / "damaged", fs::copy_options::recursive);
  const fs::path first = fs::directory_iterator(*folder_ / "damaged/n00000001")->path();
  std::ofstream(first) << "no image";
  const Ended refused = run("runs/run damaged --output-dir no");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(refused.says(first.filename().string())) << refused.output;
  EXPECT_FALSE(fs::exists(*folder_ / "no"));
  const Ended ended = run("runs/run damaged --bad-images skip --output-dir skipped");
  EXPECT_TRUE(ended.says("skipped 1 damaged image of n00000001")) << ended.output;
  EXPECT_EQ(summary("skipped")["images"], 17);
}

TEST_F(Eval, TakesThePolicyOfTheRunAtDamagedImages) {
  for (const char* half : {"train", "val"}) {
    fs::create_directories(*folder_ / "torn");
    fs::copy(*folder_ / "data" / half, *folder_ / "torn" / half, fs::copy_options::recursive);
  }
  std::ofstream(*folder_ / "torn/val/n00000001/0000.JPEG") << "no image";
  ASSERT_EQ(in_folder(fmt::format("{} --model lenet --data-dir torn --image-size 32 --batch-size 4 "
                                  "--max-steps 1 --bad-images skip --name skips",
                                  TW_TRAIN))
                .code,
            0);
  const Ended ended = run("runs/skips");
  EXPECT_EQ(ended.code, 0) << ended.output;
  EXPECT_EQ(summary("runs/skips/eval")["images"], 17);
  EXPECT_NEAR(summary("runs/skips/eval")["top1"], summary("runs/skips")["val_top1"], 1e-6);
  EXPECT_EQ(run("runs/skips --bad-images fail").code, 2);
  EXPECT_EQ(RunOnImages::run("predict", "runs/skips torn/val/n00000001/").code, 0);
  EXPECT_EQ(RunOnImages::run("predict", "runs/run torn/val/n00000001/").code, 2);
}

TEST_F(Eval, WritesOverNothingElse) {
  const std::string weights = "runs/run/checkpoints/step-00000030/model.safetensors";
  for (const std::string& file :
       {std::string("data/val/n00000001/0001.JPEG"), weights, std::string("runs/run/config.json"),
        std::string("runs/run/metrics.csv")}) {
    const std::string before = text_of(*folder_ / file);
    ASSERT_FALSE(before.empty()) << file;
    const std::string refused =
        fmt::format("[file] {} exists and is not a table of predictions", file);
    refuses("eval", "runs/run --save " + file, refused);
    refuses("predict", fmt::format("runs/run data/val --save {}", file), refused);
    EXPECT_EQ(text_of(*folder_ / file), before) << file;
  }
  std::ofstream(*folder_ / "empty.csv").close();
  for (const char* program : {"eval runs/run", "predict runs/run data/val", "eval runs/run"}) {
    const Ended ended = in_folder(fmt::format("{}/{} --save empty.csv", TW_BIN, program));
    EXPECT_EQ(ended.code, 0) << ended.output;
    EXPECT_EQ(rows_of("empty.csv").size(), 1u + 18);
  }
}

TEST_F(Eval, AWrongOutputFolderIsRefusedBeforeTheWork) {
  const std::string summary = text_of(*folder_ / "runs/run/summary.json");
  for (const auto& [folder, text] :
       {std::pair{"data/val/n00000001/0001.JPEG", "cannot write to the folder data/val/"},
        {"runs/run/config.json/below", "cannot write to the folder runs/run/config.json/below"},
        {"runs/run", "output-dir is runs/run, the folder of a run"}})
    refuses("eval", fmt::format("runs/run --output-dir {} --save early.csv", folder), text);
  fs::create_directory(*folder_ / "of_others");
  for (const char* file : {"summary.json", "classes.csv", "confusion.csv"}) {
    std::ofstream(*folder_ / "of_others" / file) << "mine";
    refuses("eval", "runs/run --output-dir of_others", "exists and is not a");
    fs::remove(*folder_ / "of_others" / file);
    refuses("eval", fmt::format("runs/run --output-dir of_others --save of_others/{}", file),
            "which the evaluation replaces");
  }
  EXPECT_EQ(in_folder(fmt::format("{}/eval runs/run --save /dev/stdout | cat", TW_BIN)).code, 0);
  EXPECT_TRUE(in_folder(fmt::format("cd of_others && {}/eval ../runs/run --save classes.csv "
                                    "--output-dir .",
                                    TW_BIN))
                  .says("evaluation replaces"));
  EXPECT_FALSE(fs::exists(*folder_ / "early.csv"));
  EXPECT_EQ(text_of(*folder_ / "runs/run/summary.json"), summary);
}

TEST_F(Eval, AFullDiskLeavesTheResultsOfOneEvaluation) {
  ASSERT_EQ(run("runs/run --output-dir full").code, 0);
  const auto files = [] {
    std::string all;
    for (const char* file : {"confusion.csv", "classes.csv", "summary.json"})
      all += text_of(*folder_ / "full" / file);
    return all;
  };
  const std::string before = files();
  fs::copy(*folder_ / "data/val", *folder_ / "fewer", fs::copy_options::recursive);
  fs::remove_all(*folder_ / "fewer/n00000002");
  // files end at 1,024 bytes: the tables fit, a summary with a long name does not
  std::string same_folder = "fewer";
  for (int i = 0; i < 500; ++i) same_folder = "./" + same_folder;
  const Ended full = in_folder(
      fmt::format("bash -c 'ulimit -f 1; exec {}/eval runs/run {} --output-dir full >/dev/null'",
                  TW_BIN, same_folder));
  EXPECT_EQ(full.code, 1) << full.output;
  EXPECT_TRUE(full.says("summary.json")) << full.output;
  EXPECT_EQ(files(), before);
}

TEST_F(Eval, RefusesImpossibleOptionsOfADamagedRun) {
  fs::create_directories(*folder_ / "wrong");
  fs::copy(*folder_ / "runs/run", *folder_ / "wrong/run", fs::copy_options::recursive);
  const Json whole = Json::parse(text_of(*folder_ / "runs/run/config.json"));
  for (const auto& [key, value, text] :
       {std::tuple{"val_split", Json(7), "val_split is 7; expected 0 to 0.9"},
        {"val_split", Json(-0.1), "val_split is -0.1; expected 0 to 0.9"},
        {"val_size", Json(-5), "val_size is -5; expected 0 or more"},
        {"val_size", Json(1.5), "config.json"},
        {"dataset", Json("imagefolderr"), "nearest is \"imagefolder\""}}) {
    Json damaged = whole;
    damaged[key] = value;
    std::ofstream(*folder_ / "wrong/run/config.json") << damaged;
    refuses("eval", "wrong/run", text);
  }
}

TEST_F(Eval, NamesOfAnyBytesAreShownAndDoNotActOnTheTerminal) {
  const std::string hostile =
      "caf\xe9\x1b[2J\xc2\x9b"
      "[2J\n";
  const std::string shown = "caf\\xe9\\x1b[2J\\xc2\\x9b[2J\\x0a";
  fs::create_directories(*folder_ / "odd");
  for (const char* half : {"train", "val"}) {
    fs::copy(*folder_ / "data" / half, *folder_ / "odd" / half, fs::copy_options::recursive);
    fs::rename(*folder_ / "odd" / half / "n00000002", *folder_ / "odd" / half / hostile);
  }
  std::ofstream(*folder_ / "odd/val" / hostile / "0001.JPEG") << "no image";
  ASSERT_EQ(in_folder(fmt::format("{} --model lenet --data-dir odd --image-size 32 --batch-size 4 "
                                  "--max-steps 1 --bad-images skip --eval-every never --name odd",
                                  TW_TRAIN))
                .code,
            0);
  const std::string file = *folder_ / "odd/val" / hostile / "0000.JPEG";
  for (const auto& [program, arguments] :
       {std::pair{std::string("eval"), std::string("runs/odd")},
        {"predict", fmt::format("runs/odd odd/val --top 3 '{}' --bad-images skip", file)},
        {"predict", fmt::format("runs/odd '{}.none'", file)}}) {
    const Ended ended = RunOnImages::run(
        program, arguments + (arguments.ends_with("none'") ? "" : " --save odd.csv"));
    EXPECT_TRUE(ended.says(shown)) << ended.output;
    EXPECT_EQ(ended.output.find('\x1b'), std::string::npos) << ended.output;
    EXPECT_EQ(ended.output.find('\xe9'), std::string::npos) << ended.output;
    EXPECT_FALSE(ended.says("\xc2\x9b")) << ended.output;
    // JSON takes UTF-8 only
    EXPECT_NE(Json(text_of(*folder_ / "odd.csv")).dump(), "");
  }
  EXPECT_TRUE(Json::parse(text_of(*folder_ / "runs/odd/eval/summary.json")).is_object());
}

TEST_F(Eval, SaysWhatIsMissing) {
  for (const auto& [arguments, text] :
       {std::pair{"", "[options] RUN is missing"},
        {"nothing", "[eval] nothing does not exist"},
        {"runs/run no-images", "[eval] there is no no-images here"},
        {"runs/run data --dataset shapes", "shapes makes its images itself"},
        {"runs/run --model no", "unknown model \"no\""},
        {"runs/run --save no/file.csv", "no"}})
    refuses("eval", arguments, text);
  fs::copy_file(*folder_ / "runs/run/checkpoints/step-00000030/model.safetensors",
                *folder_ / "alone.safetensors");
  EXPECT_TRUE(run("alone.safetensors").says("give a folder of images"));
  const Ended alone = run("alone.safetensors data");
  EXPECT_EQ(alone.code, 0) << alone.output;
  EXPECT_FALSE(alone.says("written to")) << alone.output;
}

}  // namespace
}  // namespace tw::test
