// --bn-stats recompute: batch-norm statistics at the present weights.
#include <nlohmann/json.hpp>

#include "apps/train/evaluate.h"
#include "comm/collectives/collectives.h"
#include "comm/transports.h"
#include "engine/io/safetensors.h"
#include "tests/support/model_step.h"
#include "tests/support/program.h"
#include "tests/support/train_config.h"

namespace tw::test {
namespace {

constexpr int64_t kBatch = 6, kBatches = 8;

/// 50 random images: eight whole batches.
class RandomImages : public Dataset {
 public:
  size_t size() const override { return 50; }
  int32_t get(size_t i, std::span<uint8_t> pixels) const override {
    const Philox philox(7, Purpose::test);
    for (size_t p = 0; p < pixels.size(); ++p)
      pixels[p] = static_cast<uint8_t>(philox(i, static_cast<uint32_t>(p))[0]);
    return static_cast<int32_t>(i % 10);
  }
};

Loader batches_of_all_ranks() {
  return {std::make_shared<RandomImages>(), {.batch = kBatch, .threads = 0}};
}

/// The statistics that `ranks` ranks recompute from `batches` batches; the same on all of them.
std::vector<float> recomputed(int ranks, int64_t batches) {
  std::vector<float> result;
  run_on_threads(ranks, [&](Communicator& comm) {
    PlannedModel planned("resnet20", kBatch);
    Loader loader = batches_of_all_ranks();
    const HostFloats running = planned.model.arena().host_statistics();
    planned.step();
    const std::vector<float> before(running.span().begin(), running.span().end());
    const std::vector<float> all =
        recompute_statistics(planned.ctx, comm, planned.model, loader, batches, 1, [](int64_t) {});
    EXPECT_TRUE(std::ranges::equal(running.span(), before)) << "the running statistics stay";
    EXPECT_EQ(planned.model.take_sums(planned.ctx).count, 0) << "no image counts";
    std::vector<float> of_rank_0 = all;
    broadcast(comm, 0, std::as_writable_bytes(std::span(of_rank_0)));
    EXPECT_EQ(all, of_rank_0);
    if (comm.rank() == 0) result = all;
  });
  return result;
}

TEST(RecomputedStatistics, AreTheMeansOverTheBatchesOfAllRanks) {
  PlannedModel planned("resnet20", kBatch);
  Loader loader = batches_of_all_ranks();
  loader.start(0);
  HostFloats live = planned.model.arena().host_statistics();
  std::vector<double> expected(live.span().size());
  for (int64_t i = 0; i < kBatches; ++i) {
    // from 0, a training pass leaves a tenth of the batch's own statistics
    std::ranges::fill(live.span(), 0.0f);
    const Batch& batch = loader.next();
    copy_now(batch.images, planned.model.images());
    copy_now(batch.labels, planned.model.labels());
    planned.model.forward(planned.pass);
    for (size_t j = 0; j < expected.size(); ++j)
      expected[j] += 10.0 * live.span()[j] / static_cast<double>(kBatches);
  }
  for (const int ranks : {1, 2, 3, 12}) {
    SCOPED_TRACE(ranks);
    const std::vector<float> ours = recomputed(ranks, kBatches);
    ASSERT_EQ(ours.size(), expected.size());
    for (size_t j = 0; j < ours.size(); ++j)
      ASSERT_NEAR(ours[j], expected[j], 1e-5 * std::max(1.0, std::abs(expected[j]))) << j;
    EXPECT_EQ(recomputed(ranks, kBatches), ours);
    EXPECT_NE(recomputed(ranks, kBatches - 1), ours);
  }
}

TEST(RecomputedStatistics, AreOfWholeBatchesOfAnEpoch) {
  EXPECT_EQ(train_config({"--bn-stats", "recompute"}).bn_stats,
            fmt::format("recompute={}", BnStats::kImages));
  for (const auto& [value, batches] :
       std::vector<std::pair<const char*, int64_t>>{{"average", 0},
                                                    {"local", 0},
                                                    {"recompute=1", 1},
                                                    {"recompute=64", 2},
                                                    {"recompute=65", 3},
                                                    {"recompute=320", 10},
                                                    {"recompute=9223372036854775807", 10}})
    EXPECT_EQ(BnStats(value).batches(32, 330), batches) << value;
  for (const char* value :
       {"", "recompute=", "recompute=0", "recompute=-1", "recompute=1k", "mean"})
    EXPECT_THROW(BnStats{value}, UserError) << value;
}

std::string train(const TempFolder& folder, const std::string& arguments, int steps = 12) {
  return fmt::format(
      "THINWIRE_CACHE={} {} --output-dir {} --precision f32 --model resnet20 --batch-size 8 "
      "--lr 0.05 --val-size 100 --max-steps {} {}",
      TW_TEST_CACHE, TW_TRAIN, folder.path().string(), steps, arguments);
}

/// The columns step to images of steps.csv: all before the times.
std::string losses(const std::filesystem::path& run) {
  std::istringstream in(text_of(run / "steps.csv"));
  std::string result;
  for (std::string line; std::getline(in, line);) {
    size_t end = 0;
    for (int column = 0; column < 7; ++column) end = line.find(',', end + 1);
    result += line.substr(0, end) + '\n';
  }
  return result;
}

nlohmann::json summary(const std::filesystem::path& run) {
  return nlohmann::json::parse(text_of(run / "summary.json"));
}

std::vector<float> tensor(const std::filesystem::path& run, const std::string& name) {
  const SafetensorsReader file(run / "checkpoints/step-00000012/model.safetensors");
  const auto values = file.tensor(name).as<float>();
  return {values.begin(), values.end()};
}

TEST(RecomputedStatistics, ServeValidationAndItsCheckpointAndNotTheTraining) {
  const TempFolder folder;
  const std::string options = "--bn-stats recompute=100 --workers 2 --name ";
  const Ended whole = run_well(train(folder, options + "whole --checkpoint-steps 5"));
  EXPECT_TRUE(whole.says("batch-norm statistics for validation: recomputed from 104 training"));
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "whole/config.json"))["bn_stats"],
            "recompute=100");

  run_well(train(folder, "--workers 2 --name average"));
  EXPECT_EQ(losses(folder / "whole"), losses(folder / "average"));
  EXPECT_EQ(tensor(folder / "whole", "conv1.weight"), tensor(folder / "average", "conv1.weight"));
  EXPECT_NE(tensor(folder / "whole", "bn1.running_mean"),
            tensor(folder / "average", "bn1.running_mean"));
  EXPECT_NE(summary(folder / "whole")["val_loss"], summary(folder / "average")["val_loss"]);

  // validation of the checkpoint on another number of ranks, with the statistics that it holds
  const double loss = summary(folder / "whole")["val_loss"];
  const auto validated = [&](const std::string& more) {
    const Ended ended = run_well(train(folder, "--eval-only " + more));
    const size_t at = ended.output.rfind("loss ");
    return at == std::string::npos ? 0 : std::stod(ended.output.substr(at + 5));
  };
  for (const char* ranks : {"1", "2", "3"})
    EXPECT_NEAR(validated(fmt::format("--workers {} --bn-stats recompute=100 --resume {}", ranks,
                                      (folder / "average").string())),
                loss, 2e-4);
  EXPECT_NEAR(validated("--pretrained " + (folder / "whole").string()), loss, 2e-4);

  // a resumed run has the bits of one that was left alone
  run_well(train(folder, options + "cut", 7));
  run_well(train(folder, "--resume " + (folder / "cut").string()));
  EXPECT_EQ(weights_hash(folder / "cut"), weights_hash(folder / "whole"));
  EXPECT_EQ(losses(folder / "cut"), losses(folder / "whole"));
}

TEST(RecomputedStatistics, CalibrateWeightsWithoutTraining) {
  const TempFolder folder;
  run_well(train(folder, "--name trained"));
  run_well(train(folder, "--epochs 0 --bn-stats recompute=50 --name calibrated --pretrained " +
                             (folder / "trained").string()));
  const SafetensorsReader file(folder / "calibrated/checkpoints/step-00000000/model.safetensors");
  const auto mean = file.tensor("bn1.running_mean").as<float>();
  EXPECT_FALSE(std::ranges::equal(mean, tensor(folder / "trained", "bn1.running_mean")));
}

TEST(RecomputedStatistics, AnUnknownValueEndsInOneLine) {
  const TempFolder folder;
  const Ended ended = run_command(train(folder, "--bn-stats recompute=0"));
  EXPECT_EQ(ended.code, 2);
  EXPECT_TRUE(
      ended.says("[options] bn-stats is recompute=0; expected one of: average, local, "
                 "recompute, recompute=IMAGES"))
      << ended.output;
  EXPECT_EQ(ended.lines(), 1u);
}

TEST(RecomputedStatistics, ABatchOfMoreThanAllTrainingImagesEndsInOneLine) {
  const TempFolder folder;
  run_well(train(folder, "--name trained"));
  expect_end(train(folder, "--eval-only --batch-size 30000 --bn-stats recompute --pretrained " +
                               (folder / "trained").string()),
             2, "bn-stats is recompute=2048, but a batch of 30000 is more than the ");
}

}  // namespace
}  // namespace tw::test
