// What the plan that train prints says of the densities, the warm-up and the network.
#include <sys/resource.h>

#include <nlohmann/json.hpp>
#include <regex>

#include "apps/train/sweep.h"
#include "apps/train/trainer.h"
#include "comm/transports.h"
#include "engine/core/stopwatch.h"
#include "tests/support/arguments.h"
#include "tests/support/error_text.h"
#include "tests/support/jpegs.h"
#include "tests/support/program.h"

namespace tw::test {
namespace {

/// What `train --dry-run` prints.
std::string plan(const std::string& arguments) {
  const Ended ended = run_well(
      fmt::format("THINWIRE_CACHE={} {} --dry-run {}", TW_TEST_CACHE, TW_TRAIN, arguments));
  return ended.output;
}

void has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << part << "\nnot in\n" << text;
}

void lacks(const std::string& text, const std::string& part) {
  EXPECT_EQ(text.find(part), std::string::npos) << part << "\nin\n" << text;
}

const std::string kTopk = "--model mlp --workers 2 --sparsifier topk ";

TEST(Plan, TellsTheDensityOfEachEpoch) {
  const std::string text = plan(kTopk + "--density 0.001");
  has(text, " from epoch 3 on\ndensity warm-up: 0.015625 in epoch 1 (");
  has(text, " entries, ");
  has(text, " per step), 0.004 in epoch 2 (");
  lacks(text, "never reached");
  const std::string without = plan(kTopk + "--density 0.001 --density-warmup none");
  lacks(without, "density warm-up");
  lacks(without, "from epoch");
}

TEST(Plan, SaysThatTheMemoryOfTheMachineIsTooSmall) {
  const std::string small = "the ranks of this machine need ";
  lacks(plan("--model mlp"), small);
  has(plan("--model vgg19 --batch-size 2 --workers 4096"), small);  // 1.9 TiB
}

TEST(Plan, HasNoDensityWarmupBelowTheDensity) {
  const std::string text = plan(kTopk + "--density 0.1 --epochs 3");
  lacks(text, "density warm-up");
  lacks(text, "never reached");
  has(plan(kTopk + "--density 0.1 --density-warmup 0.01 --epochs 3"),
      "density 0.01 of epoch 1 is below the density 0.1 that follows");
}

TEST(Plan, SaysThatAShortRunNeverReachesItsDensity) {
  has(plan(kTopk + "--epochs 2"),
      "density 0.001 is never reached: the warm-up takes 2 epochs, the run has 2");
  lacks(plan(kTopk + "--epochs 2"), "from epoch 3 on");
  has(plan(kTopk + "--epochs 3"), "from epoch 3 on");
  lacks(plan(kTopk + "--epochs 3"), "never reached");
  // 156 steps an epoch
  has(plan(kTopk + "--max-steps 312"), "the warm-up takes 2 epochs, the run has 2");
  lacks(plan(kTopk + "--max-steps 313"), "never reached");
  lacks(plan("--model mlp --epochs 1"), "never reached");
}

TEST(Plan, SaysThatADensityCostsMoreThanDense) {
  has(plan(kTopk + "--density 0.9"), "density 0.9 sends ");
  has(plan(kTopk + "--density 0.9"), " per step, more than dense SGD with ");
  lacks(plan(kTopk + "--density 0.01"), "more than dense");
  lacks(plan("--model mlp --workers 2 --density 0.9"), "more than dense");
}

TEST(Plan, TellsStepsAndBytesOfTheRun) {
  // 156 steps an epoch; 3.0 KiB at density 0.001 and no warm-up
  const std::string gtopk = "--model lenet --workers 2 --sparsifier gtopk --density-warmup none ";
  has(plan(gtopk + "--epochs 2"), "156 steps per epoch, 312 in all, about ");
  has(plan(gtopk + "--max-steps 1"), ", 1 in all, about 1.0 KiB sent\n");
  has(plan(gtopk + "--max-steps 8 --local-steps 4"), ", 8 in all, about 2.0 KiB sent\n");
  has(plan("--model lenet --max-steps 20"), "312 steps per epoch, 20 in all\n");
}

TEST(Plan, CountsWhatAResumedRunHasLeft) {
  const TempFolder folder;
  const std::string run = fmt::format(
      "--model lenet --sparsifier gtopk --density-warmup none "
      "--output-dir {} --resume auto --name a --workers ",
      folder.path().string());
  const auto train = [&](const std::string& more) {
    run_well(fmt::format("THINWIRE_CACHE={} {} --quiet {}{}", TW_TEST_CACHE, TW_TRAIN, run, more));
  };
  train("2 --max-steps 10");
  const std::string on = "4 --max-steps 0 --epochs 1";
  // 10 batches of 2 x 32 images are 5 of 4 x 32; a step sends 3.0 KiB
  has(plan(run + on), "78 steps per epoch, 83 in all, 73 of them left, about 219.0 KiB sent in ");
  has(plan(run + "2 --max-steps 4"), ", 10 in all, 0 of them left, about 0 B sent in these\n");
  train(on);
  EXPECT_EQ(nlohmann::json::parse(text_of(folder / "a/summary.json")).at("steps"), 83);
}

TEST(Plan, BoundsASelectorThatRoundsUp) {
  // of 450, 2400, 48000, 10080 and 840 weights: 1 + 3 + 48 + 11 + 1
  has(plan("--model lenet --workers 2 --sparsifier dgc"), "dgc: at most 64 and ");
}

TEST(Plan, RefusesWhatTheRunRefuses) {
  const TempFolder folder;
  const std::string lenet = fmt::format(
      "--model lenet --max-steps 1 --eval-every never --output-dir {} ", folder.path().string());
  const auto run = [&](const std::string& arguments) {
    return run_command(
        fmt::format("THINWIRE_CACHE={} {} {} {}", TW_TEST_CACHE, TW_TRAIN, lenet, arguments));
  };
  ASSERT_EQ(run("--name a --quiet").code, 0);
  const std::string resume = "--resume " + (folder / "a").string();
  for (const std::string& wrong :
       std::vector<std::string>{"--name a", resume + " --sparsifier topk", resume + " --seed 2",
                                resume + " --model mlp --name b", "--resume none --name b"}) {
    const Ended real = run(wrong), dry = run("--dry-run " + wrong);
    EXPECT_EQ(dry.code, 2) << wrong << dry.output;
    const std::string error = real.output.substr(real.output.find("error: "));
    EXPECT_TRUE(dry.says(error)) << error << dry.output;
  }
  EXPECT_TRUE(run("--dry-run --name b " + resume).says("/a/checkpoints/step-00000001 at step 1\n"));
  EXPECT_EQ(run("--dry-run --resume auto --name c").code, 0);
  EXPECT_FALSE(std::filesystem::exists(folder / "b"));
  EXPECT_FALSE(std::filesystem::exists(folder / "c"));
  const std::string begins = "/c has no checkpoint to resume\n";
  EXPECT_TRUE(run("--resume auto --name c").says(begins));
  EXPECT_FALSE(run("--resume auto --name c").says(begins));
}

TEST(Plan, TellsTheWarmupOfTheLearningRate) {
  has(plan("--model mlp"), "learning-rate warm-up: the first 2 of 10 epochs");
  has(plan(kTopk + "--epochs 3"), "learning-rate warm-up: the first 0.6 of 3 epochs (auto)");
  lacks(plan("--model mlp --warmup-epochs 0"), "learning-rate warm-up");
  has(plan("--model mlp --workers 2 --accumulate 3 --lr 0.1 --lr-scaling linear"),
      "\nlearning rate 0.1, times 6 by --lr-scaling linear: 0.6\n");
  const std::string cut = "--max-steps ends the run before its end";
  has(plan("--model mlp --max-steps 20"), cut);
  lacks(plan("--model mlp --max-steps 2000"), cut);
}

TEST(Plan, SaysWhichNetworkANameStandsFor) {
  has(plan("--model vgg16"), "\nvgg16 is vgg16_cifar for images of 32 x 32\n");
  const TempFolder folder;
  write_image_folder(folder / "data", 2, 40, 2);
  const std::string photographs =
      "--dataset imagefolder --data-dir " + (folder / "data").string() + " --model ";
  const std::string large = plan(photographs + "vgg16");
  has(large, "\nvgg16 is vgg16_imagenet for images of 224 x 224\n");
  has(large, "vgg16: 134268738 parameters");
  has(plan(photographs + "resnet20"), "resnet20 is made for images of up to 64 x 64");
  has(plan("--model resnet18"), "resnet18 is made for images of at least 96 x 96; these are 32 x");
  lacks(plan("--model resnet20"), "is made for");
}

TEST(Plan, HasTheBytesOfAStartOfWholeGradients) {
  const std::string run = "--model mlp --workers 2 --sparsifier powersgd --set powersgd.start=";
  const auto sent = [&](const std::string& start, const std::string& steps) {
    const std::string text = plan(run + start + " --max-steps " + steps);
    return text.substr(text.find("in all, "), text.find(" sent\n") - text.find("in all, "));
  };
  has(plan(run + "1"), "; the first step sums whole gradients, ");
  has(plan(run + "30"), "; the first 30 steps sum whole gradients, ");
  has(plan(run + "30 --local-steps 2"), "; the first 30 exchanges sum whole gradients, ");
  lacks(plan(run + "0"), "whole gradients");
  const std::string dense = plan("--model mlp --workers 2 --max-steps 3");
  has(dense, sent("3", "3"));
  has(dense, sent("100", "3"));
  EXPECT_NE(sent("2", "3"), sent("3", "3"));
}

TEST(Plan, SaysWhichFlagsHaveNoEffect) {
  const std::string all = plan(
      "--model mlp --density 0.1 --zero-init --device cpu --deterministic --lr-milestones 3 --link "
      "1Gbit,1ms --bn-stats local");
  for (const char* flag :
       {"density", "zero-init", "deterministic", "lr-milestones", "link", "bn-stats"})
    has(all, fmt::format("--{} has no effect: ", flag));
  lacks(all, "emulated");
  has(plan("--model mlp --no-error-feedback"), "--no-error-feedback has no effect: dense keeps no");
  lacks(plan("--model mlp --workers 2 --sparsifier powersgd --no-error-feedback --allreduce ring"),
        "no effect");
  const std::string unread = "--model mlp --workers 2 --sparsifier quantized --density 0.1 ";
  for (const char* collective : {"ring", "binomial_tree"}) {
    const std::string said = plan(unread + "--allreduce " + collective);
    has(said,
        "\n--density has no effect: quantized selects no entries\n"
        "--allreduce has no effect: quantized uses no dense collective\n");
    lacks(said, "allreduce.collective");
  }
  lacks(plan("--model resnet20 --zero-init --workers 2 --link 1Gbit,1ms --lr-schedule step "
             "--lr-milestones 3 --sparsifier topk --density 0.1"),
        "no effect");
}

TEST(Plan, RefusesOptionsThatThisDataOrExchangeIgnores) {
  const TempFolder folder;
  const auto refused = [&](const std::string& arguments, const std::string& line) {
    const Ended ended =
        run_command(fmt::format("THINWIRE_CACHE={} {} --model mlp --output-dir {} {}",
                                TW_TEST_CACHE, TW_TRAIN, folder.path().string(), arguments));
    EXPECT_EQ(ended.code, 2) << ended.output;
    EXPECT_EQ(ended.output, "error: [options] " + line + "\n");
  };
  for (const char* size : {"64", "32"})
    refused(fmt::format("--image-size {}", size),
            "image-size has no effect: images of shapes are 32 x 32");
  refused("--colour-jitter 0.1", "colour-jitter has no effect: shapes has no image files");
  refused("--bad-images skip", "bad-images has no effect: shapes has no image files");
  refused("--shuffle shards",
          "shuffle has no effect: the training images are not all of those of a record file");
  refused(
      "--dataset shapes --data-dir " + (folder / "mine").string(),
      fmt::format("data-dir is {}, but the images of shapes are generated; THINWIRE_CACHE names "
                  "the folder that keeps them",
                  (folder / "mine").string()));
  const std::string nothing_reads = " has no effect: no part of this run reads it";
  refused("--workers 2 --set wire.values=bf16", "set wire.values" + nothing_reads);
  for (const char* ignores : {"scalecom", "powersgd", "bsp"})
    refused(fmt::format("--workers 2 --set wire.indices=packed --sparsifier {}", ignores),
            "set wire.indices" + nothing_reads);
  refused("--workers 2 --sparsifier topk --ranks-per-node 2",
          "ranks-per-node has no effect: no link is emulated (--link), and topk has no nodes");
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(Plan, SaysWhichOptionsOfAFileHaveNoEffect) {
  const TempFolder folder;
  std::ofstream(folder / "c.json")
      << R"({"colour_jitter": 0.1, "image_size": 0, "set": {"wire.values": "bf16"},
              "run": {"ranks": 4}})";
  std::ofstream(folder / "odd.json") << R"({"model": "mlp", "run": {"ranks": "4"}})";
  lacks(plan("--config " + (folder / "odd.json").string()), "configuration had");
  const std::string said = plan("--model mlp --config " + (folder / "c.json").string());
  has(said, "\n--colour-jitter has no effect: shapes has no image files\n");
  has(said, "\n--set wire.values has no effect: no part of this run reads it\n");
  has(said, "\nthe run of this configuration had 4 ranks, this one has 1\n");
  lacks(said, "--image-size");
}

TEST(Plan, NodesOfTheHierarchicalExchangeNeedNoLink) {
  // 4 ranks of mlp's d floats: in nodes of two, twice 8 (d+1) + 16 + 4 d bytes are sent inside
  const std::string run = "--model mlp --workers 4 --sparsifier hierarchical --density 1e-9 ";
  const std::string said = plan(run + "--ranks-per-node 2");
  lacks(said, "no effect");
  EXPECT_NE(said, plan(run));
  // nodes that are not those of the link
  has(plan(run + "--link 1Gbit,1ms"), "\na node of hierarchical has 4 ranks, one of the link 1: ");
  lacks(plan(run + "--link 1Gbit,1ms --ranks-per-node 2"), "a node of");
}

TEST(Plan, SaysWhichFlagsNeedOthers) {
  const std::string one = plan(
      "--model resnet20 --allreduce ring --comm-timeout 9 --decay-all --weight-decay 0 --keep-best "
      "--eval-every never --bucket-mib 2");
  for (const char* flag : {"allreduce", "comm-timeout", "decay-all", "keep-best", "bucket-mib"})
    has(one, fmt::format("--{} has no effect: ", flag));
  has(one, "batch-norm statistics for validation: running averages\n");
  const std::string two = plan(
      "--model resnet20 --workers 2 --allreduce ring --comm-timeout 9 --decay-all --keep-best "
      "--scope layer --bucket-mib 2 --link 1Gbit,1ms --ranks-per-node 2");
  lacks(two, "no effect");
  has(two, ", links of 1Gbit,1ms emulated, but one node has all ranks: messages take no time\n");
  has(two, "batch-norm statistics for validation: averaged over ranks\n");
  lacks(plan("--model mlp --workers 2"), "batch-norm statistics");
}

TEST(Plan, OfManyRanksIsFast) {
  const Stopwatch watch;
  const std::string text =
      plan("--model mlp --sparsifier gtopk --workers 1000 --batch-size 4 --link 1Gbit,1ms");
  has(text, "1000 ranks x 1 thread, batch 4 each");
  has(text, ", links of 1Gbit,1ms emulated\n");
  for (const char* mode : {"--dry-run", ""}) {
    expect_end(fmt::format("THINWIRE_CACHE={} {} --model resnet20 --workers 1000 {}", TW_TEST_CACHE,
                           TW_TRAIN, mode),
               2, "10000 images are too few for one batch of 32 on each of 1000 ranks");
  }
  EXPECT_LT(watch.total(), 20);  // a thread for each rank would take a minute
}

/// During its lifetime this process gets at most `bytes` of address space beside what it has.
class LittleMemory {
 public:
  explicit LittleMemory(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE)) + bytes,
                       before_.rlim_max};
    setrlimit(RLIMIT_AS, &limit);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

/// What a run says that gets this many MiB of memory beside what the process has.
std::string said_with_little_memory(const char* model, const char* batch, rlim_t mebibytes) {
  const TempFolder folder;
  const std::string runs = folder.path().string();
  Arguments arguments({"--model", model, "--dataset", "shapes", "--device", "cpu", "--batch-size",
                       batch, "--threads-per-rank", "1", "--loader-threads", "0", "--output-dir",
                       runs, "--val-size", "64"});
  const TrainConfig config =
      parse_train_configs(parse_flags(arguments.count(), arguments.values()), {})[0];
  const DataSplit data =
      datasets()
          .find(config.dataset)
          .value({.dir = std::filesystem::path(TW_TEST_CACHE) / "shapes-v1", .val_size = 64});
  const std::unique_ptr<Communicator> comm = make_self_communicator();
  const std::atomic<bool> stop = false;
  Console console(false);
  return error_text<Fault>([&] {
    const LittleMemory little(mebibytes << 20);
    train(*comm, config, data, stop, console);
  });
}

TEST(Plan, MemoryThatRunsOutIsNamedWithItsSizeAndThatOfThePlan) {
#ifdef TW_SANITIZED
  GTEST_SKIP() << "a sanitizer reserves address space of its own";
#endif
  // 14.7 million parameters, whose values and gradients take 118 MB
  const std::string parameters = said_with_little_memory("vgg16_cifar", "1", 90);
  EXPECT_TRUE(std::regex_match(
      parameters,
      std::regex("\\[train\\] rank 0: no memory for parameters, gradients and activations; "
                 "[0-9.]+ MiB planned for each of 1 ranks; \\[buffer\\] out of memory: "
                 "[0-9]{8,} bytes requested")))
      << parameters;
  // 9,000 images take 27.6 MB, and nothing is planned yet
  const std::string images = said_with_little_memory("lenet", "9000", 20);
  EXPECT_TRUE(std::regex_match(images, std::regex("\\[train\\] rank 0: no memory for batches of "
                                                  "images; \\[buffer\\] out of memory: 27648000 "
                                                  "bytes requested")))
      << images;
}

}  // namespace
}  // namespace tw::test
