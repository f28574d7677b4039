// The profile of a step: measured, written, read.
#include <gtest/gtest.h>

#include <fstream>

#include "apps/common/measurements.h"
#include "apps/common/version.h"
#include "tests/support/error_text.h"
#include "tests/support/temp_folder.h"

namespace tw::test {
namespace {

struct SmallNet {
  Context ctx{Device::cpu, 1};
  Model model{"lenet", {}};

  SmallNet() {
    model.plan(ctx, {.batch = 2});
    model.allocate(ctx, 1);
    fill_random_batch(ctx, model, 1);
    model.refresh(ctx);
  }
};

TEST(ComputeProfile, GradientsOfLastLayersAreReadyFirst) {
  SmallNet net;
  const ComputeProfile profile = time_passes(net.ctx, net.model, 0);
  ASSERT_EQ(profile.ready.size(), net.model.arena().parameters().size());
  EXPECT_GT(profile.forward, 0);
  for (const double seconds : profile.ready) {
    EXPECT_GT(seconds, 0);
    EXPECT_LE(seconds, profile.backward);
  }
  EXPECT_GT(profile.ready.front(), profile.ready.back());
}

TEST(ComputeProfile, AFileHoldsIt) {
  SmallNet net;
  const TempFolder folder;
  const std::string path = (folder / "profile.csv").string();
  const ComputeProfile written = time_passes(net.ctx, net.model, 0);
  write_profile(path, net.model.arena(), written);
  const ComputeProfile read = read_profile(path, net.model.arena());
  EXPECT_NEAR(read.forward, written.forward, 1e-8);
  EXPECT_NEAR(read.backward, written.backward, 1e-8);
  for (size_t i = 0; i < written.ready.size(); ++i)
    EXPECT_NEAR(read.ready[i], written.ready[i], 1e-8) << i;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    EXPECT_TRUE(line.ends_with(provenance_cells()) || line.ends_with(provenance_names())) << line;
}

TEST(ComputeProfile, MedianIsTakenOfEachValue) {
  const ComputeProfile median = median_profile({{.forward = 1, .backward = 6, .ready = {5, 1}},
                                                {.forward = 2, .backward = 5, .ready = {3, 2}},
                                                {.forward = 3, .backward = 4, .ready = {4, 3}}});
  EXPECT_EQ(median.forward, 2);
  EXPECT_EQ(median.backward, 5);
  EXPECT_EQ(median.ready, (std::vector<double>{4, 2}));
}

TEST(ComputeProfile, AFileOfAnotherModelOrNoneIsRefused) {
  const SmallNet net;
  const TempFolder folder;
  const std::string path = (folder / "profile.csv").string();
  const auto error = [&](const std::string& text) {
    std::ofstream(path) << text;
    return error_text<UserError>([&] { read_profile(path, net.model.arena()); });
  };
  const std::string head = "part,parameters,seconds\n";
  EXPECT_NE(error("a,b\n").find("expected the columns part,parameters,seconds"), std::string::npos);
  EXPECT_NE(error(head + "forward,0,x\n").find("line 2"), std::string::npos);
  EXPECT_NE(error(head + "forward,0,-1\n").find("line 2"), std::string::npos);
  EXPECT_NE(error(head + "forward,0,nan\n").find("line 2"), std::string::npos);
  EXPECT_NE(error(head + "other,3,0.1\n").find("the model has no parameter other"),
            std::string::npos);
  const Parameter& first = net.model.arena().parameters().front();
  EXPECT_NE(error(head + first.name + ",1,0.1\n").find("has 1 elements; in the model it has"),
            std::string::npos);
  EXPECT_NE(error(head + "forward,0,1\n").find("lacks the parameter"), std::string::npos);
  EXPECT_NE(error(head + "forward,0,1\nforward,0,1\n").find("line 3: a second row of forward"),
            std::string::npos);
  std::string all = head;
  for (const Parameter& p : net.model.arena().parameters())
    all += fmt::format("{},{},0.1\n", p.name, p.length());
  EXPECT_NE(error(all + "backward,0,1\n").find("lacks the row forward"), std::string::npos);
  EXPECT_NE(error(all + "forward,0,1\n").find("lacks the row backward"), std::string::npos);
  std::ofstream(path) << all + "forward,0,1\nbackward,0,1\n\n";
  EXPECT_NO_THROW(read_profile(path, net.model.arena()));
  std::filesystem::remove(path);
  EXPECT_THROW(read_profile(path, net.model.arena()), UserError);
}

}  // namespace
}  // namespace tw::test
