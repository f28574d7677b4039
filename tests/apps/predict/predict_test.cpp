// The program predict: the most probable classes of images.
#include "engine/io/safetensors.h"
#include "tests/support/run_on_images.h"

namespace tw::test {
namespace {

namespace fs = std::filesystem;

class Predict : public RunOnImages {
 protected:
  static Ended run(const std::string& arguments) { return RunOnImages::run("predict", arguments); }
};

TEST_F(Predict, AgreesWithEval) {
  ASSERT_EQ(RunOnImages::run("eval", "runs/run --save eval.csv").code, 0);
  const Ended ended = run("runs/run data/val --save predict.csv");
  ASSERT_EQ(ended.code, 0) << ended.output;
  const auto evaluated = rows_of("eval.csv"), rows = rows_of("predict.csv");
  ASSERT_EQ(rows.size(), 1u + 18);
  ASSERT_EQ(evaluated.size(), rows.size());
  EXPECT_EQ(rows[0], (std::vector<std::string>{"image", "prediction", "n00000000", "n00000001",
                                               "n00000002"}));
  for (size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i][0], "data/val/" + evaluated[i][0]);
    EXPECT_EQ(rows[i][1], evaluated[i][2]);
    double sum = 0, most = 0;
    for (size_t c = 2; c < 5; ++c) {
      sum += std::stod(rows[i][c]);
      most = std::max(most, std::stod(rows[i][c]));
    }
    EXPECT_NEAR(sum, 1, 1e-5);
    EXPECT_NEAR(most, std::stod(evaluated[i][3]), 1e-5);
  }
  EXPECT_EQ(ended.lines(), 18u) << ended.output;
}

TEST_F(Predict, NamesTheMostProbableClassesFirst) {
  ASSERT_EQ(run("runs/run data/val/n00000001/0002.JPEG --save one.csv").code, 0);
  const auto row = rows_of("one.csv")[1];
  const Ended ended = run("runs/run data/val/n00000001/0002.JPEG --top 2");
  char first[16], second[16];
  double of_first = 0, of_second = 0;
  ASSERT_EQ(std::sscanf(ended.output.c_str(), "data/val/n00000001/0002.JPEG: %15s %lf, %15s %lf\n",
                        first, &of_first, second, &of_second),
            4)
      << ended.output;
  EXPECT_EQ(first, row[1]);
  EXPECT_GE(of_first, of_second);
  for (const auto& [name, probability] : {std::pair{first, of_first}, {second, of_second}})
    EXPECT_NEAR(probability, std::stod(row[2 + static_cast<size_t>(name[8] - '0')]), 6e-5) << name;
}

TEST_F(Predict, WritesTheTableThoughNobodyReadsTheLines) {
  std::string images;  // for more lines than one write takes
  for (int i = 0; i < 10; ++i) images += " data/val";
  in_folder(fmt::format("{}/predict runs/run{} --save unread.csv | true", TW_BIN, images));
  EXPECT_EQ(rows_of("unread.csv").size(), 1u + 180);
}

TEST_F(Predict, TakesFilesAndFoldersInTheOrderGiven) {
  const Ended ended = run("runs/run data/val/n00000002/ data/val/n00000000/0001.JPEG");
  ASSERT_EQ(ended.lines(), 7u) << ended.output;
  EXPECT_TRUE(ended.output.starts_with("data/val/n00000002/0000.JPEG: ")) << ended.output;
  EXPECT_LT(ended.output.find("n00000002/0005.JPEG"), ended.output.find("n00000000/0001.JPEG"));
}

TEST_F(Predict, TakesNamesThatBeginWithADashAfterTwo) {
  for (const char* name : {"-odd.jpg", "--save"})
    fs::copy_file(*folder_ / "data/val/n00000001/0002.JPEG", *folder_ / name);
  const Ended ended = run("runs/run -- -odd.jpg --save ");
  // run() adds an option, which is a name here
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(ended.says("[data] --threads-per-rank does not exist")) << ended.output;
  const Ended both = in_folder(fmt::format("{}/predict runs/run -- -odd.jpg --save", TW_BIN));
  EXPECT_EQ(both.code, 0) << both.output;
  EXPECT_TRUE(both.output.starts_with("-odd.jpg: ") && both.says("\n--save: ")) << both.output;
}

TEST_F(Predict, AsEvalTakesMeanAndDeviationOfTheDataWhereTheFileHasNone) {
  const SafetensorsReader weights(*folder_ /
                                  "runs/run/checkpoints/step-00000030/model.safetensors");
  SafetensorsWriter bare;
  for (const auto& [name, tensor] : weights.tensors()) bare.add(name, tensor);
  bare.write(*folder_ / "bare.safetensors");
  const std::string options = " --model lenet --image-size 32 --save ";
  for (const char* program : {"predict", "eval"}) {
    const Ended ended =
        RunOnImages::run(program, "bare.safetensors data/val" + options + "bare.csv");
    EXPECT_TRUE(ended.says("the weights name no mean and deviation")) << ended.output;
    ASSERT_EQ(RunOnImages::run(program, "runs/run data/val --save usual.csv").code, 0);
    const auto with = rows_of("usual.csv"), without = rows_of("bare.csv");
    for (size_t i = 1; i < with.size(); ++i) EXPECT_EQ(with[i].back(), without[i].back()) << i;
  }
  bare.metadata("classes", R"(["a", "b", "c", "d"])");
  bare.write(*folder_ / "bare.safetensors");
  refuses("predict", "bare.safetensors data/val" + options + "x", "4 class names for 3 outputs");
}

TEST_F(Predict, SaysWhatIsMissing) {
  fs::create_directory(*folder_ / "empty");
  std::ofstream(*folder_ / "broken.jpg") << "no image";
  for (const auto& [arguments, text] :
       {std::pair{"runs/run", "[options] IMAGES is missing"},
        {"runs/run no.jpg", "[data] no.jpg does not exist"},
        {"runs/run empty", "[data] empty has no images"},
        {"runs/run broken.jpg", "broken.jpg: "},
        {"nothing broken.jpg", "[predict] nothing does not exist"},
        {"runs/run data/val --save no/file.csv", "no"},
        {"runs/run broken.jpg --bad-images skip", "all images are damaged: broken.jpg: "}})
    refuses("predict", arguments, text);
  const Ended ended = run("runs/run broken.jpg data/val/n00000000/0001.JPEG --bad-images skip");
  EXPECT_EQ(ended.code, 0);
  EXPECT_TRUE(ended.says("0001.JPEG: ") && ended.says("skipped: broken.jpg: ")) << ended.output;
}

}  // namespace
}  // namespace tw::test
