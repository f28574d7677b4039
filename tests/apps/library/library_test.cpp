// The C interface: its groups, its states, and what it answers to wrong calls.
#include <atomic>
#include <cstring>
#include <fstream>
#include <limits>

#include "apps/train/config.h"
#include "engine/io/safetensors.h"
#include "tests/apps/library/library_rig.h"
#include "tests/support/temp_folder.h"

namespace tw {
namespace {

TEST(Library, DenseMeanIsTheMeanOfAllGradients) {
  const int code = on_threads(4, [&](thinwire_group* group) {
    LibraryRig rig(group, "{}");
    ASSERT_EQ(rig.step(0), THINWIRE_OK);
    for (size_t i = 0; i < kLength; ++i) {
      float sum = 0;  // of integers
      for (int rank = 0; rank < 4; ++rank) sum += SgdRig::gradient(exact_kinds()[1], rank, 0, i);
      EXPECT_EQ(rig.mean[i], sum / 4) << i;
    }
  });
  EXPECT_EQ(code, 0) << thinwire_error();
}

TEST(Library, CallbacksGiveTheBitsOfThreads) {
  const std::string options = R"({"sparsifier": "topk", "scope": "layer"})";
  std::vector<float> expected;
  uint64_t bytes = 0;
  on_threads(3, [&](thinwire_group* group) {
    LibraryRig rig(group, options);
    EXPECT_EQ(rig.step(0, 0.1, rounding_kind()), THINWIRE_OK);
    if (thinwire_group_rank(group) == 0) expected = rig.mean, bytes = rig.report.bytes_sent;
  });
  run_on_threads(3, [&](Communicator& comm) {
    CallbackGroup by_callbacks(comm);
    EXPECT_EQ(thinwire_group_rank(by_callbacks.group), comm.rank());
    EXPECT_EQ(thinwire_group_size(by_callbacks.group), 3);
    LibraryRig rig(by_callbacks.group, options);
    EXPECT_EQ(rig.step(0, 0.1, rounding_kind()), THINWIRE_OK) << thinwire_error();
    EXPECT_TRUE(same_bits(rig.mean, expected));
    if (comm.rank() == 0) {
      EXPECT_EQ(rig.report.bytes_sent, bytes);
    }
  });
}

TEST(Library, AFailedCallbackIsAFaultAndAbortTellsTheOthers) {
  static std::atomic<int> aborts;
  aborts = 0;
  const thinwire_callbacks callbacks{.rank = 1,
                                     .size = 2,
                                     .user = nullptr,
                                     .exchange = [](void*, int, const void*, size_t, int, void*,
                                                    size_t, double) -> int64_t { return -1; },
                                     .abort = [](void*, const char*) { ++aborts; }};
  thinwire_group* group = nullptr;
  ASSERT_EQ(thinwire_group_of_callbacks(&callbacks, &group), THINWIRE_OK);
  thinwire_reducer* reducer = nullptr;
  EXPECT_EQ(thinwire_reducer_create(group, nullptr, kTensors, 3, &reducer), THINWIRE_FAULT);
  EXPECT_EQ(reducer, nullptr);
  EXPECT_STREQ(thinwire_error(), "[callbacks] rank 1: the exchange to rank 0 from rank 0 failed");
  EXPECT_EQ(thinwire_group_abort(group, "test"), THINWIRE_OK);
  EXPECT_EQ(aborts, 1);
  thinwire_group_free(group);
}

/// Rank 1 of two ranks that send the same; messages of one direction fail.
thinwire_group* echoing_group() {
  thinwire_callbacks callbacks{.rank = 1, .size = 2, .user = nullptr, .exchange = {}, .abort = {}};
  callbacks.exchange = [](void*, int to, const void* out, size_t out_bytes, int from, void* in,
                          size_t, double) -> int64_t {
    if (to < 0 || from < 0) return -1;
    std::memcpy(in, out, out_bytes);
    return static_cast<int64_t>(out_bytes);
  };
  thinwire_group* group = nullptr;
  EXPECT_EQ(thinwire_group_of_callbacks(&callbacks, &group), THINWIRE_OK);
  return group;
}

TEST(Library, AGroupThatIsFreedFirstLivesUntilItsLastReducerIsFreed) {
  thinwire_group* const group = echoing_group();
  LibraryRig one(group, R"({"sparsifier": "topk"})"), last(group, "{}");
  thinwire_group_free(group);
  EXPECT_EQ(one.step(0), THINWIRE_OK) << thinwire_error();
}

TEST(Library, AFailedExchangeNamesOnlyTheSidesThatItHas) {
  thinwire_group* const group = echoing_group();
  LibraryRig rig(group, R"({"sparsifier": "gtopk"})");
  EXPECT_EQ(rig.step(0), THINWIRE_FAULT);
  EXPECT_STREQ(thinwire_error(), "[callbacks] rank 1: the exchange to rank 0 failed");
  thinwire_group_free(group);
}

TEST(Library, AStopOfOneRankReachesAll) {
  std::atomic<int> stopped = 0;
  on_threads(3, [&](thinwire_group* group) {
    LibraryRig rig(group, "{}");
    float* const gradients[] = {rig.mean.data(), rig.mean.data() + 300, rig.mean.data() + 450};
    const thinwire_step input{
        .step = 0, .density = 1, .warmup = 0, .stop = thinwire_group_rank(group) == 2};
    EXPECT_EQ(thinwire_reducer_step(rig.reducer, &input, gradients, &rig.report), THINWIRE_OK);
    stopped += rig.report.stop;
  });
  EXPECT_EQ(stopped, 3);
}

TEST(Library, PredictsBytesAndSecondsOfAStep) {
  std::atomic<uint64_t> sent = 0, predicted = 0;
  on_threads(4, [&](thinwire_group* group) {
    LibraryRig rig(group, R"({"sparsifier": "gtopk"})");
    EXPECT_EQ(rig.step(0), THINWIRE_OK);
    uint64_t all = 0;
    ASSERT_EQ(thinwire_reducer_bytes(rig.reducer, 0.1, &all), THINWIRE_OK) << thinwire_error();
    sent += rig.report.bytes_sent;
    if (thinwire_group_rank(group) == 0) predicted = all;
    double fast = 0, slow = 0;
    ASSERT_EQ(thinwire_reducer_seconds(rig.reducer, "100Mbit,1ms", 0.1, &slow), THINWIRE_OK);
    ASSERT_EQ(thinwire_reducer_seconds(rig.reducer, "10Gbit,0ms", 0.1, &fast), THINWIRE_OK);
    // four hops of a tree and its broadcast, each a latency; 60 entries of 8 bytes
    EXPECT_NEAR(slow, 4e-3, 4e-4);
    EXPECT_LT(fast, 1e-5);
    // inside one node: six messages of a ring, and two of a tree for the status and for the sum
    LibraryRig node(group, R"({"sparsifier": "hierarchical"})");
    ASSERT_EQ(thinwire_reducer_seconds(node.reducer, "100Gbit,1ms", 0.1, &slow), THINWIRE_OK);
    EXPECT_NEAR(slow, 10e-3, 1e-4);
  });
  EXPECT_EQ(sent, predicted);
}

TEST(Library, AnEmulatedLinkTakesItsTime) {
  std::vector<double> seconds(2);
  on_threads(2, [&](thinwire_group* group) {
    ASSERT_EQ(thinwire_group_set_link(group, "1Gbit,50ms"), THINWIRE_OK) << thinwire_error();
    LibraryRig rig(group, R"({"sparsifier": "topk"})");
    EXPECT_EQ(rig.step(0), THINWIRE_OK);
    seconds[thinwire_group_rank(group)] = rig.report.seconds_exchange;
    EXPECT_EQ(thinwire_group_set_link(group, "1Gbit,50ms"), THINWIRE_MISUSE);
  });
  // of the rank that comes first: a late one finds the message there, and the clock of a link
  // makes up for a late wake-up, 10 ms at most
  EXPECT_GE(std::max(seconds[0], seconds[1]), 0.04);
}

TEST(Library, TheRanksOfANodeOfALinkAreThoseOfHierarchicalToo) {
  const test::TempFolder folder;
  const std::string file = (folder / "link.json").string();
  std::ofstream(file) << R"({"link": "100Gbit,0us", "ranks_per_node": 2})";
  on_threads(4, [&](thinwire_group* group) {
    ASSERT_EQ(thinwire_group_set_link(group, file.c_str()), THINWIRE_OK) << thinwire_error();
    LibraryRig by_file(group, R"({"sparsifier": "hierarchical"})");
    LibraryRig set(group, R"({"sparsifier": "hierarchical", "set": {"hierarchical.node": 2}})");
    EXPECT_EQ(by_file.saved(), set.saved());  // also of the options
  });
}

TEST(Library, ThreadsEndWithTheFirstCode) {
  const int code = thinwire_run_threads(
      3, [](thinwire_group* group, void*) { return thinwire_group_rank(group) == 1 ? 9 : 0; },
      nullptr);
  EXPECT_EQ(code, 9);
  EXPECT_EQ(thinwire_run_threads(
                0, [](thinwire_group*, void*) { return 0; }, nullptr),
            THINWIRE_MISUSE);
}

TEST(Library, AReducerThatOutlivesItsThreadIsAMisuse) {
  static thinwire_reducer* left = nullptr;
  EXPECT_EQ(thinwire_run_threads(
                1,
                [](thinwire_group* group, void*) {
                  const int64_t length = 4;
                  const thinwire_tensor tensor{"weight", &length, 1};
                  return thinwire_reducer_create(group, nullptr, &tensor, 1, &left);
                },
                nullptr),
            THINWIRE_MISUSE);
}

TEST(Library, RefusesStatesOfOthers) {
  std::vector<std::vector<char>> states(2);
  on_threads(2, [&](thinwire_group* group) {
    LibraryRig rig(group, R"({"sparsifier": "topk"})");
    rig.step(0);
    states[thinwire_group_rank(group)] = rig.saved();
  });
  const auto load = [&](const char* options, const std::vector<char>& state, int rank) {
    std::string text;
    on_threads(2, [&](thinwire_group* group) {
      LibraryRig rig(group, options);
      if (thinwire_group_rank(group) != rank) return;
      const std::vector<char> before = rig.saved();
      EXPECT_EQ(thinwire_reducer_load(rig.reducer, state.data(), state.size()), THINWIRE_MISUSE);
      text = thinwire_error();
      EXPECT_EQ(rig.saved(), before);
    });
    return text;
  };
  const char* const topk = R"({"sparsifier": "topk"})";
  EXPECT_EQ(load(topk, states[0], 1),
            R"([thinwire] rank is "0 of 2" in the state, "1 of 2" in this reducer)");
  EXPECT_EQ(load(R"({"sparsifier": "topk", "residual_decay": 0.5})", states[0], 0),
            R"([thinwire] residual_decay is "1.0" in the state, "0.5" in this reducer)");
  std::vector<char> damaged = states[0];
  damaged[damaged.size() - 5] ^= 1;
  EXPECT_NE(load(topk, damaged, 0).find("the state"), std::string::npos);
  damaged.resize(damaged.size() / 2);
  EXPECT_NE(load(topk, damaged, 0).find("the state"), std::string::npos);
  EXPECT_EQ(load(topk, {}, 0), "[thinwire] state is NULL");
}

TEST(Library, SavesIntoTooLittleRoomNothing) {
  on_threads(1, [&](thinwire_group* group) {
    LibraryRig rig(group, R"({"sparsifier": "topk"})");
    std::vector<char> room(10, 'x');
    size_t bytes = room.size();
    EXPECT_EQ(thinwire_reducer_save(rig.reducer, room.data(), &bytes), THINWIRE_MISUSE);
    EXPECT_GT(bytes, kLength * sizeof(float));
    EXPECT_EQ(std::string(room.begin(), room.end()), "xxxxxxxxxx");
  });
}

TEST(Library, RefusesWrongOptionsTensorsAndSteps) {
  on_threads(1, [&](thinwire_group* group) {
    const auto refused = [&](const char* options) {
      thinwire_reducer* reducer = nullptr;
      EXPECT_EQ(thinwire_reducer_create(group, options, kTensors, 3, &reducer), THINWIRE_MISUSE)
          << options;
      EXPECT_EQ(reducer, nullptr);
      return std::string(thinwire_error());
    };
    EXPECT_NE(refused(R"({"sparsifier": "topkk"})").find(R"(nearest is "topk")"),
              std::string::npos);
    EXPECT_EQ(refused(R"({"sparsifer": "topk"})"),
              R"([thinwire] unknown option "sparsifer"; nearest is "sparsifier")");
    EXPECT_EQ(refused("[1]"), "[thinwire] the options are not a JSON object: [1]");
    EXPECT_EQ(refused(R"({"momentum": 0.9})"),
              R"([thinwire] option "momentum" acts only with a momentum before the selection; )"
              "without one the optimizer that takes the mean has it");
    EXPECT_NE(refused(R"({"set": {"gaussiank.refin": "paper"}})").find("gaussiank.refine"),
              std::string::npos);
    const std::string unknown = refused(R"({"set": {"reducer.seed": 2}})");
    EXPECT_TRUE(unknown.starts_with(R"(unknown setting "reducer.seed")")) << unknown;
    EXPECT_EQ(unknown.find("reducer.scope"), std::string::npos) << unknown;
    EXPECT_NE(refused(R"({"sparsifier": "topk", "set": {"gaussiank.refine": "histogram"}})")
                  .find("gaussiank.refine has no effect"),
              std::string::npos);
    EXPECT_NE(refused(R"({"sparsifier": "topk", "residual_decay": 0.5, "no_error_feedback": true})")
                  .find("has no effect with no_error_feedback"),
              std::string::npos);
    EXPECT_NE(
        refused(R"({"sparsifier": "dgc", "momentum": 0, "nesterov": true})").find("nesterov needs"),
        std::string::npos);
    EXPECT_NE(refused(R"({"residual_decay": 2})").find("at most 1"), std::string::npos);
    EXPECT_NE(refused(R"({"scope": "tensor"})").find("auto, model, layer"), std::string::npos);

    const auto wrong_tensor = [&](const thinwire_tensor* tensors, size_t count) {
      thinwire_reducer* reducer = nullptr;
      EXPECT_EQ(thinwire_reducer_create(group, "{}", tensors, count, &reducer), THINWIRE_MISUSE);
      return std::string(thinwire_error());
    };
    const int64_t nothing[] = {3, 0};
    const thinwire_tensor twice[] = {kTensors[0], kTensors[0]}, empty[] = {{"a", nothing, 2}},
                          nameless[] = {{nullptr, kFirst, 2}};
    EXPECT_EQ(wrong_tensor(kTensors, 0), "[thinwire] no tensors");
    EXPECT_EQ(wrong_tensor(nullptr, 1), "[thinwire] tensors is NULL");
    EXPECT_EQ(wrong_tensor(empty, 1), "[tensors] a: an extent is 0");
    EXPECT_EQ(wrong_tensor(nameless, 1), "[thinwire] the name of a tensor is NULL");
    EXPECT_NE(wrong_tensor(twice, 2).find("layer0.weight"), std::string::npos);
    const thinwire_tensor lines[] = {{"a\nb", kFirst, 2}, {"a\nb", kFirst, 2}};
    EXPECT_EQ(wrong_tensor(lines, 2), "[tensors] two tensors are called a\\x0ab");

    LibraryRig rig(group, R"({"sparsifier": "topk"})");
    EXPECT_EQ(rig.step(0, 0), THINWIRE_MISUSE);
    EXPECT_EQ(rig.step(0, 1.5), THINWIRE_MISUSE);
    EXPECT_EQ(rig.step(0, std::numeric_limits<double>::quiet_NaN()), THINWIRE_MISUSE);
    EXPECT_EQ(thinwire_reducer_step(rig.reducer, nullptr, nullptr, nullptr), THINWIRE_MISUSE);
    EXPECT_EQ(rig.step(0), THINWIRE_OK);
    for (const double seconds : {-1.0, 1e10, std::numeric_limits<double>::quiet_NaN()})
      EXPECT_EQ(thinwire_group_set_timeout(group, seconds), THINWIRE_MISUSE) << seconds;
    EXPECT_EQ(thinwire_group_set_timeout(group, 1e9), THINWIRE_OK);
  });
  EXPECT_EQ(thinwire_group_of_callbacks(nullptr, nullptr), THINWIRE_MISUSE);
  thinwire_callbacks callbacks{};
  thinwire_group* group = nullptr;
  EXPECT_EQ(thinwire_group_of_callbacks(&callbacks, &group), THINWIRE_MISUSE);
  EXPECT_EQ(thinwire_reducer_create(nullptr, nullptr, kTensors, 3, nullptr), THINWIRE_MISUSE);
  thinwire_group_free(nullptr);
  thinwire_reducer_free(nullptr);
}

/// What all ranks say to these options of each; `reordered`: the last has its tensors in another
/// order.
std::string said_to(const std::vector<std::string>& options, bool reordered = false) {
  std::vector<std::string> said(options.size());
  on_threads(static_cast<int>(options.size()), [&](thinwire_group* group) {
    const auto rank = static_cast<size_t>(thinwire_group_rank(group));
    const thinwire_tensor others[] = {kTensors[0], kTensors[2], kTensors[1]};
    const auto* tensors = reordered && rank + 1 == options.size() ? others : kTensors;
    thinwire_reducer* reducer = nullptr;
    if (const int code =
            thinwire_reducer_create(group, options[rank].c_str(), tensors, 3, &reducer))
      said[rank] = fmt::format("{} {}", code, thinwire_error());
    thinwire_reducer_free(reducer);
  });
  for (const std::string& one : said) EXPECT_EQ(one, said[0]);
  return said[0];
}

TEST(Library, RanksWithOtherTensorsOrOptionsAreAMisuseOnAll) {
  const auto differ = [](const char* key, const char* one, const char* other) {
    return fmt::format(
        "2 [setup] {0} is {1} on rank 1; {0} is {2} on rank 0: all ranks must be the same", key,
        other, one);
  };
  const std::string topk = R"({"sparsifier": "topk"})", dgc = R"({"sparsifier": "dgc", )";
  const std::string powersgd = R"({"sparsifier": "powersgd", "seed": 3})";
  for (const std::string& options : {topk, std::string("{}"), powersgd})
    EXPECT_EQ(said_to({options, options}, true),
              differ("tensor 1", "layer1.weight (150)", "layer2.weight (15, 10)"));
  EXPECT_EQ(said_to({topk, R"({"sparsifier": "gaussiank"})"}),
            differ("sparsifier", "topk", "gaussiank"));
  EXPECT_EQ(said_to({powersgd, R"({"sparsifier": "powersgd"})"}), differ("seed", "3", "1"));
  EXPECT_EQ(said_to({dgc + R"("momentum": 0.5})", dgc + R"("momentum": 0.75})"}),
            differ("momentum", "0.5", "0.75"));
  EXPECT_EQ(said_to({"{}", R"({"set": {"wire.values": "bf16"}})"}),
            differ("wire.values", "f32", "bf16"));
  EXPECT_EQ(said_to({"{}", R"({"threads_per_rank": 2})"}), "");
}

TEST(Library, OptionsHaveTheDefaultsAndRangesOfTrain) {
  const Json of_train = TrainConfig().json();
  on_threads(1, [&](thinwire_group* group) {
    const std::vector<char> state = LibraryRig(group, "{}").saved();
    const auto bytes = std::as_bytes(std::span(state));
    const SafetensorsReader file("state", std::vector<std::byte>(bytes.begin(), bytes.end()));
    for (const char* key : {"sparsifier", "selector", "exchange", "scope", "momentum_correction",
                            "momentum", "nesterov", "bucket_mib", "no_error_feedback",
                            "residual_decay", "density_of", "ef21", "seed"}) {
      const Json& standard = of_train.at(key);
      EXPECT_EQ(file.metadata().at(key),
                standard.is_string() ? standard.get<std::string>() : standard.dump());
    }
  });
  for (const char* key : {"scope", "momentum_correction", "momentum", "nesterov", "bucket_mib",
                          "no_error_feedback", "residual_decay", "ef21", "seed"})
    for (const char* value : {"-1", "0", "0.5", "1", "1.5", "1e6", "2e6", "4294967295",
                              "4294967296", "true", "\"layer\"", "\"off\"", "\"x\""}) {
      const std::string options = fmt::format(R"({{"{}": {}}})", key, value);
      TrainConfig config;
      bool refused = false;
      try {
        config.table().set_json(Json::parse(options), "train");
      } catch (const UserError&) {
        refused = true;
      }
      const std::string said = said_to({options});
      EXPECT_EQ(said.starts_with("2 [settings]"), refused) << options << " " << said;
    }
}

TEST(Library, RefusesOptionsWithoutAnEffect) {
  for (const auto& [options, text] : std::map<std::string, std::string>{
           {R"({"no_error_feedback": true})", "no_error_feedback has no effect: dense keeps no"},
           {R"({"bucket_mib": 2})", "bucket_mib has no effect: the scope is not layer"},
           {R"({"sparsifier": "dgc", "momentum_correction": "on", "momentum": 0})",
            "momentum_correction needs a momentum above 0"},
           {R"({"sparsifier": "topk", "density_of": "layer1.*=1"})", "each tensor: scope layer"}})
    EXPECT_NE(said_to({options}).find(text), std::string::npos) << options;
  EXPECT_EQ(said_to({R"({"sparsifier": "topk", "scope": "layer", "bucket_mib": 2})"}), "");
}

TEST(Library, TensorsOfAnyNumberOfDimensions) {
  on_threads(1, [&](thinwire_group* group) {
    const int64_t volume[] = {2, 3, 1, 2, 2};
    const thinwire_tensor tensors[] = {{"scalar", nullptr, 0}, {"volume", volume, 5}};
    thinwire_reducer* reducer = nullptr;
    ASSERT_EQ(thinwire_reducer_create(group, nullptr, tensors, 2, &reducer), THINWIRE_OK)
        << thinwire_error();
    float scalar = 3;
    std::vector<float> rest(24, 2);
    float* const gradients[] = {&scalar, rest.data()};
    const thinwire_step input{.step = 0, .density = 1, .warmup = 0, .stop = 0};
    EXPECT_EQ(thinwire_reducer_step(reducer, &input, gradients, nullptr), THINWIRE_OK);
    EXPECT_EQ(scalar, 3);
    EXPECT_EQ(rest, std::vector<float>(24, 2));
    thinwire_reducer_free(reducer);
  });
}

}  // namespace
}  // namespace tw
