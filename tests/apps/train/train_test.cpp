// The program train, end to end, on the generated data set with small networks.
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

using Json = nlohmann::json;

/// All runs share one copy of the generated data set, below the build folder.
std::string train(const TempFolder& folder, const std::string& arguments) {
  return fmt::format("THINWIRE_CACHE={} {} --output-dir {} --precision f32 {}", TW_TEST_CACHE,
                     TW_TRAIN, folder.path().string(), arguments);
}

Json summary(const std::filesystem::path& run) {
  std::ifstream in(run / "summary.json");
  return Json::parse(in);
}

std::vector<double> one_to(int n) {
  std::vector<double> result(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) result[static_cast<size_t>(i)] = i + 1;
  return result;
}

const char* const kSmall = "--model lenet --epochs 2 --max-steps 30 --lr 0.02 ";

TEST(Train, WritesARunFolder) {
  const TempFolder folder;
  const Ended ended = run_well(train(folder, std::string(kSmall) + "--name one"));
  EXPECT_TRUE(ended.says("training on the generated data set shapes"));
  EXPECT_EQ(table_column(folder / "one/steps.csv", "step"), one_to(30));
  EXPECT_EQ(table_column(folder / "one/metrics.csv", "epoch"), one_to(1));
  const std::string header = text_of(folder / "one/metrics.csv");
  EXPECT_EQ(header.substr(0, header.find('\n')),
            "epoch,lr,density,train_loss,train_top1,val_loss,val_top1,val_top5,images_per_s,"
            "seconds,nnz_over_k,bytes_sent,sec_data,sec_forward,sec_backward,sec_select,"
            "sec_exchange,sec_update,sec_wait");
  const Json result = summary(folder / "one");
  EXPECT_EQ(result["steps"], 30);
  EXPECT_GT(result["val_top1"], 0.0);
  const Json config = Json::parse(text_of(folder / "one/config.json"));
  EXPECT_EQ(config["model"], "lenet");
  EXPECT_EQ(config["run"]["ranks"], 1);
}

TEST(Train, DivergenceIsAFault) {
  const TempFolder folder;
  expect_end(train(folder, std::string(kSmall) + "--lr 1e9 --max-steps 2 --name far"), 4,
             "error: [train]");
}

TEST(Train, SeedDecidesTheBits) {
  const TempFolder folder;
  for (const char* arguments : {"--seed 1 --name a", "--seed 1 --name b", "--seed 2 --name c"})
    run_well(train(folder, std::string(kSmall) + "--workers 2 --sparsifier topk " + arguments));
  const auto hash = [&](const char* name) { return summary(folder / name)["weights_hash"]; };
  EXPECT_EQ(hash("a"), hash("b"));
  EXPECT_NE(hash("a"), hash("c"));
}

TEST(Train, LoaderThreadsChangeNoBit) {
  const TempFolder folder;
  for (const char* arguments : {"--loader-threads 0 --name a", "--loader-threads 3 --name b"})
    run_well(train(folder, std::string(kSmall) + arguments));
  EXPECT_EQ(summary(folder / "a")["weights_hash"], summary(folder / "b")["weights_hash"]);
}

TEST(Train, OverlapChangesNoBit) {
  for (const char* options : {"dense", "gtopk", "dgc", "dense --batch-size 32 --accumulate 2"}) {
    const TempFolder folder;
    const std::string run = fmt::format(
        "{}--workers 3 --scope layer --bucket-mib 0.01 --sparsifier {} --name ", kSmall, options);
    const Ended plain = run_well(train(folder, run + "plain"));
    run_well(train(folder, run + "overlap --overlap"));
    EXPECT_EQ(summary(folder / "plain")["weights_hash"],
              summary(folder / "overlap")["weights_hash"])
        << options;
  }
}

TEST(Train, AnalyzeEveryChangesNoBit) {
  const TempFolder folder;
  const std::string run = std::string(kSmall) + "--workers 2 --sparsifier topk --name ";
  run_well(train(folder, run + "plain"));
  const Ended analyzed = run_well(train(folder, run + "analyzed --analyze-every 7"));
  EXPECT_EQ(summary(folder / "plain")["weights_hash"],
            summary(folder / "analyzed")["weights_hash"]);
  const std::string table = text_of(folder / "analyzed/distributions.csv");
  EXPECT_NE(table.find("\n1,"), std::string::npos) << table;
  EXPECT_NE(text_of(folder / "analyzed/residual_histograms.csv").find("\n1,"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "plain/distributions.csv"));
}

TEST(Train, MismatchedWeightsCreateNoRunFolder) {
  const TempFolder folder;
  run_well(train(folder, "--model mlp --max-steps 1 --name mlp"));
  const std::filesystem::path weights =
      std::filesystem::directory_iterator(folder / "mlp/checkpoints")->path() / "model.safetensors";
  expect_end(
      train(folder, fmt::format("--model lenet --name lenet --pretrained {}", weights.string())), 2,
      "is missing");
  EXPECT_FALSE(std::filesystem::exists(folder / "lenet"));
}

TEST(Train, DerivedNamesAreNumberedAndGivenNamesMustBeFree) {
  const TempFolder folder;
  const std::string tiny = "--model mlp --max-steps 2 --checkpoint-every 0 ";
  run_well(train(folder, tiny));
  run_well(train(folder, tiny));
  EXPECT_TRUE(std::filesystem::exists(folder / "mlp-dense-s1-2/summary.json"));
  run_well(train(folder, tiny + "--name mine"));
  const std::string before = text_of(folder / "mine/summary.json");
  std::filesystem::remove_all(folder / "mine/checkpoints");
  expect_end(train(folder, tiny + "--name mine"), 2, "exists; choose another --name");
  EXPECT_EQ(text_of(folder / "mine/summary.json"), before);
  EXPECT_FALSE(std::filesystem::exists(folder / "mine/checkpoints"));  // nothing was touched
}

TEST(Train, SeedsRunOneAfterTheOther) {
  const TempFolder folder;
  const Ended ended = run_well(train(folder, "--model mlp --max-steps 5 --seeds 1,2,3 --name s"));
  EXPECT_TRUE(ended.says("over 3 seeds"));
  double sum = 0;
  for (const char* name : {"s-s1", "s-s2", "s-s3"})
    sum += summary(folder / name)["val_top1"].get<double>();
  EXPECT_TRUE(ended.says(fmt::format("{:.4f} ±", sum / 3))) << ended.output;
}

TEST(Train, DryRunPrintsThePlanAndWritesNothing) {
  const TempFolder folder;
  const Ended ended =
      run_well(train(folder, "--model resnet20 --sparsifier gaussiank --workers 4 --dry-run"));
  EXPECT_TRUE(ended.says("269722 parameters"));
  EXPECT_TRUE(ended.says("any number (aimed at: 269) of 269722 entries")) << ended.output;
  EXPECT_TRUE(ended.says("sent per step by all for 269 entries")) << ended.output;
  EXPECT_TRUE(ended.says("memory per rank"));
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Train, ThePlanCountsTheEntriesOfEachTensor) {
  const TempFolder folder;
  const Ended ended = run_command(train(folder, "--model resnet20 --sparsifier dgc --dry-run"));
  EXPECT_TRUE(ended.says("of small tensors of 269722 entries per step and rank, at most"))
      << ended.output;
  for (const char* sparsifier : {"dense", "bsp"})
    EXPECT_TRUE(run_command(train(folder, "--model resnet20 --dry-run --sparsifier " +
                                              std::string(sparsifier)))
                    .says(fmt::format("{0}: {1} of {1} entries per step", sparsifier, 269722)))
        << sparsifier;
}

TEST(Train, SaysFromWhenOnASelectorHasNoEffect) {
  const TempFolder folder;
  const std::string run = "--model mlp --sparsifier gaussiank --density 1 --dry-run ";
  EXPECT_TRUE(run_command(train(folder, run + "--density-warmup ''"))
                  .says("density 1: all entries are sent; selector gaussiank and its settings"));
  EXPECT_TRUE(run_command(train(folder, run + "--density-warmup 0.1,0.2"))
                  .says("density 1 from epoch 3 on: all entries are sent; selector gaussiank"));
}

TEST(Train, TheLogHasTheErrorThatEndsTheRun) {
  for (const char* ranks : {"1", "2"}) {
    const TempFolder folder;
    const Ended ended = run_command(
        train(folder, fmt::format("{} --quiet --lr 1e9 --workers {} --name bad", kSmall, ranks)));
    EXPECT_EQ(ended.code, 4) << ended.output;
    EXPECT_TRUE(ended.output.starts_with("error: [train] ")) << ended.output;
    EXPECT_TRUE(text_of(folder / "bad/run.log").ends_with("\n" + ended.output)) << ended.output;
  }
}

TEST(Train, TheHardThresholdIsTakenAfterTheDensityWarmup) {
  const TempFolder folder;
  const std::string run =
      "--model mlp --sparsifier hardthreshold --density 0.01 --batch-size 100 --lr 0.01 "
      "--density-warmup 0.1,0.05 --epochs 3 --name hard ";
  run_well(train(folder, run + short_epochs(folder.path())));
  const std::vector<double> ratios = table_column(folder / "hard/steps.csv", "nnz_over_k");
  ASSERT_EQ(ratios.size(), 18u);
  for (size_t i = 0; i < 13; ++i) EXPECT_EQ(ratios[i], 1) << "step " << i + 1;
  for (size_t i = 13; i < 18; ++i) EXPECT_NE(ratios[i], 1) << "step " << i + 1;
}

TEST(Train, LocalStatisticsAreThoseOfRankZero) {
  const TempFolder folder;
  const std::string run = "--model resnet20 --batch-size 8 --max-steps 3 --workers 2 --bn-stats ";
  run_well(train(folder, run + "local --name local"));
  run_well(train(folder, run + "average --name average"));
  EXPECT_NE(summary(folder / "local")["weights_hash"], summary(folder / "average")["weights_hash"]);
}

TEST(Train, ZeroEpochsStillValidateAndWriteASummary) {
  const TempFolder folder;
  run_well(train(folder, "--model mlp --epochs 0 --name none"));
  EXPECT_EQ(summary(folder / "none")["images_per_s"], 0.0);
  EXPECT_GT(summary(folder / "none")["val_top1"], 0.0);
}

TEST(Train, NamesTheDefaultLearningRateOfAModel) {
  const TempFolder folder;
  for (const std::string model : {"lenet", "mlp"})
    EXPECT_TRUE(run_command(train(folder, "--dry-run --model " + model))
                    .says("learning rate 0.01, the default of " + model));
  for (const char* run : {"--dry-run --model lenet --lr 0.1", "--dry-run --model resnet20"})
    EXPECT_FALSE(run_command(train(folder, run)).says("the default of")) << run;
}

TEST(Train, LenetLearnsAtItsDefaultRate) {
  const TempFolder folder;
  run_well(train(folder,
                 "--model lenet --batch-size 32 --precision f32 --max-steps 250 --eval-every 0 "
                 "--warmup-epochs 0 --name a"));
  EXPECT_GT(summary(folder / "a")["val_top1"], 0.3);
}

TEST(Programs, VersionPrintsTheBuild) {
  for (const char* program :
       {"train", "bench", "bench comm", "advise", "analyze", "pack", "doctor"}) {
    SCOPED_TRACE(program);
    const Ended ended = run_well(fmt::format("{}/{} --version", TW_BIN, program));
    EXPECT_TRUE(ended.output.starts_with("thinwire " TW_VERSION "\ncommit ")) << ended.output;
    for (const char* part : {"\noneDNN ", "CUDA", "MPI"}) EXPECT_TRUE(ended.says(part)) << part;
  }
}

TEST(Train, ListHasEveryCollectiveOfTheRootExchange) {
  const std::string list = run_command(fmt::format("{} --list", TW_TRAIN)).output;
  for (const std::string kind : {"reduce", "broadcast"}) {
    const size_t begin = list.find("\n" + kind + "\n");
    ASSERT_NE(begin, std::string::npos) << kind;
    // a section ends at the next line that is not indented
    size_t end = begin + 1;
    do end = list.find('\n', end) + 1;
    while (list[end] == ' ');
    const std::string section = list.substr(begin, end - begin);
    EXPECT_NE(section.find("\n  linear_pipeline [lp] "), std::string::npos) << section;
    EXPECT_EQ(section.find("\n  ring "), std::string::npos) << section;
  }
}

TEST(Train, ListAlignsItsColumns) {
  std::istringstream lines(run_command(fmt::format("{} --list", TW_TRAIN)).output);
  size_t column = 0;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(" ")) column = 0;  // another section
    if (!line.starts_with("  ") || line.starts_with("   ")) continue;
    const size_t help = line.find_first_not_of(' ', line.find("  ", 2));
    if (column == 0) column = help;
    EXPECT_EQ(help, column) << line;
  }
}

TEST(Train, ListShowsEveryRegisteredName) {
  const Ended ended = run_well(fmt::format("{} --list", TW_TRAIN));
  for (const char* name : {"resnet20", "vgg16", "cifar10", "shapes", "gaussiank", "topk", "ring",
                           "gaussiank.refine=paper"})
    EXPECT_TRUE(ended.says(name)) << name;
}

TEST(Train, BadFlagsAreOneLineAndExitCode2) {
  struct Case {
    std::string arguments;
    const char* expected;
  };
  const Case cases[] = {
      {"--modle resnet20", "nearest is --model"},
      {"--model resnet21", "nearest is \"resnet20\""},
      {"--sparsifier gausiank", "nearest is \"gaussiank\""},
      {"--dataset cifar", "nearest is \"cifar10\""},
      {"--selector topk", "takes no selector"},
      {"--exchange allgather", "needs a selector"},
      {"--sparsifier topk --exchange shared", "the same indices on all ranks"},
      {"--sparsifier topk --overlap", "add --scope layer"},
      {"--sparsifier topk --scope layer --overlap --measure-wait", "it excludes overlap"},
      {"--sparsifier topk --scope layer --overlap --save-gradients 1", "it excludes overlap"},
      {"--momentum-correction on", "dense selects nothing"},
      {"--sparsifier topk --momentum-correction on --momentum 0", "a momentum above 0"},
      {"--sparsifier topk --momentum-correction yes", "auto, on, off"},
      {"--density 2", "density is 2"},
      {"--batch-size 0", "batch-size is 0"},
      {"--set gaussiank.refin=paper", "nearest is \"gaussiank.refine\""},
      {"--set gaussiank.refine=papers", "expected one of"},
      {"--config missing.json", "missing.json"},
      {"--resume missing", "missing does not exist"},
      {"--dry-run --resume missing", "missing does not exist"},
      {"--output-dir /dev/null/runs --max-steps 1 --model mlp", "/dev/null/runs"},
      {"--device cuda", "cuda"},
      {"--dataset cifar10 --data-dir /dev/null", "/dev/null"},
      {"--val-size 1000000", "1000000"},
      {"--workers 64 --batch-size 1024 --model mlp", "1024"},
      {"--batch-size 100000 --model resnet110 --dry-run", "100000"},
      {"--name " + std::string(300, 'a'), "too long"},
      {"--seed 1 --seeds 1,2", "it excludes seed"},
      {"--eval-only --quiet --pretrained none", "it excludes quiet without --log"},
      {"--eval-only --resume auto --name none --model mlp", "none has no checkpoint to validate"},
      {"--model mlp --workers 2 --allreduce vendor", "this run's transport is threads"},
      {"stray", "stray"},
  };
  for (const Case& c : cases) {
    const TempFolder folder;
    const Ended ended =
        run_command(fmt::format("THINWIRE_CACHE={} {} {}{}", TW_TEST_CACHE, TW_TRAIN,
                                "--output-dir=" + folder.path().string() + " ", c.arguments));
    EXPECT_EQ(ended.code, 2) << c.arguments << "\n" << ended.output;
    EXPECT_TRUE(ended.says(c.expected)) << c.arguments << "\n" << ended.output;
    const size_t errors = ended.output.find("error: ");
    ASSERT_NE(errors, std::string::npos) << ended.output;
    EXPECT_EQ(ended.output.find('\n', errors), ended.output.size() - 1) << ended.output;
    EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << c.arguments;
  }
}

TEST(Train, TheConfigOfARunReproducesIt) {
  const TempFolder folder;
  run_well(train(folder, std::string(kSmall) +
                             "--sparsifier gaussiank --set gaussiank.refine=histogram "
                             "--name first"));
  const std::string config = (folder / "first/config.json").string();
  const Ended again = run_well(train(folder, "--config " + config + " --name again"));
  EXPECT_EQ(summary(folder / "first")["weights_hash"], summary(folder / "again")["weights_hash"]);
}

}  // namespace
}  // namespace tw::test
