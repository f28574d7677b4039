// The table of measured accuracies.
#include "apps/advise/accuracy.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/core/error.h"
#include "models/model.h"
#include "sparsify/sparsifier.h"
#include "tests/support/error_text.h"

namespace tw::test {
namespace {

constexpr const char* kHead =
    "sparsifier,options,model,dataset,ranks,batch_size,density,epochs,seeds,top1,dense_top1,"
    "commit\n";

std::string table(const std::string& rows) { return kHead + rows; }

TEST(Accuracy, FindsTheTrainingWithTheMostEpochs) {
  const auto rows =
      parse_accuracies(table("topk,,net,cifar10,4,32,0.001,10,1;2,0.82,0.85,abc\n"
                             "topk,,net,cifar10,8,32,0.001,30,1,0.9,0.91,abc\n"
                             "topk,--a 0.9 --set b.c=1,net,cifar10,4,32,0.001,99,1,0.8,0.91,abc\n"
                             "topk,,net,cifar10,4,32,0.01,99,1,0.8,0.91,abc\n"),
                       "here");
  const Accuracy* found = find_accuracy(rows, {"topk", "", "net", "cifar10", 0.001});
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->ranks, 8);
  EXPECT_EQ(found->epochs, 30);
  EXPECT_NEAR(found->loss(), 1, 1e-9);
  EXPECT_EQ(find_accuracy(rows, {"gtopk", "", "net", "", 0.001}), nullptr);
  EXPECT_EQ(find_accuracy(rows, {"topk", "", "other", "", 0.001}), nullptr);
  EXPECT_EQ(find_accuracy(rows, {"topk", "", "net", "imagenet", 0.001}), nullptr);
  EXPECT_EQ(find_accuracy(rows, {"topk", "", "net", "", 0})->epochs, 99) << "any density";
  const Accuracy* other = find_accuracy(rows, {"topk", "--set b.c=1 --a 0.9", "net", "", 0.001});
  ASSERT_NE(other, nullptr) << "the same options";
  EXPECT_EQ(other->epochs, 99);
}

TEST(Accuracy, ACurveSaysWhenAnAccuracyIsReached) {
  std::string head = kHead;
  head.insert(head.size() - 1, ",images,curve");
  const auto rows =
      parse_accuracies(head +
                           "topk,,net,cifar10,4,32,0.001,4,1,0.8,0.85,abc,500,0.2;0.6;0.5;0.8\n"
                           "topk,,net,cifar10,4,32,0.001,3,1,0.7,0.85,abc,500,0.5;0.6;0.7\n"
                           "topk,,net,cifar10,4,32,0.001,9,1,0.9,0.95,abc,,\n",
                       "here");
  EXPECT_EQ(rows[0].images, 500);
  EXPECT_DOUBLE_EQ(rows[0].epochs_to(0.2), 1);
  EXPECT_DOUBLE_EQ(rows[0].epochs_to(0.5), 1.75);
  EXPECT_DOUBLE_EQ(rows[0].epochs_to(0.6), 2) << "the first time";
  EXPECT_DOUBLE_EQ(rows[0].epochs_to(0.65), 3.5);
  EXPECT_TRUE(std::isinf(rows[0].epochs_to(0.81)));
  EXPECT_TRUE(std::isinf(rows[2].epochs_to(0.1))) << "no curve";
  const AccuracyKey key{"topk", "", "net", "cifar10", 0.001};
  EXPECT_EQ(find_training_to(rows, key, 0.65), &rows[1]) << "2.5 epochs of 3, not 3.5 of 4";
  EXPECT_EQ(find_training_to(rows, key, 0.75), &rows[0]);
  EXPECT_EQ(find_training_to(rows, key, 0.85), nullptr);
  EXPECT_THROW(parse_accuracies(head + "topk,,n,c,4,32,0.1,3,1,0.7,0.8,a,9,0.5;0.6\n", "here"),
               UserError);
  EXPECT_THROW(parse_accuracies(head + "topk,,n,c,4,32,0.1,2,1,0.7,0.8,a,9,0.5;nan\n", "here"),
               UserError);
}

TEST(Accuracy, AWrongTableNamesTheLine) {
  const auto error = [](const std::string& text) {
    return error_text<UserError>([&] { parse_accuracies(text, "here.csv"); });
  };
  for (const char* wrong : {"a,b\n", ""})
    EXPECT_NE(error(wrong).find("here.csv: expected the columns"), std::string::npos);
  EXPECT_NE(error(table("topk,,net\n")).find("here.csv, line 2: 3 cells"), std::string::npos);
  EXPECT_NE(error(table("topk,,net,c,4,32,x,10,1,0.8,0.8,a\n")).find("line 2: x is no number"),
            std::string::npos);
  const char* const outside = "line 2: a value is out of range";
  for (const char* row :
       {"topk,,net,c,4,32,0.1,10,1,nan,0.8,a\n", "topk,,net,c,4,32,0.1,10,1,82,85,a\n",
        "topk,,net,c,4,32,0.1,-3,1,0.8,0.8,a\n", "topk,,net,c,4,32,2,3,1,0.8,0.8,a\n"})
    EXPECT_NE(error(table(row)).find(outside), std::string::npos) << row;
  for (const char* row :
       {"topk,,net,c,4,32,0.1,3,,0.8,0.8,a\n", "topk,,net,c,4,32,0.1,3,1,0.8,0.8,\n"})
    EXPECT_NE(error(table(row)).find("line 2: expected seeds and a commit"), std::string::npos)
        << row;
  EXPECT_NE(error(table("nosuch,,net,c,4,32,0.1,3,1,0.8,0.8,a\n")).find("no sparsifier nosuch"),
            std::string::npos);
}

TEST(Accuracy, TheBuiltInTableNamesRegisteredThings) {
  for (const Accuracy& row : parse_accuracies(built_in_accuracies(), "built-in")) {
    EXPECT_NO_THROW(sparsifiers().find(row.sparsifier));
    EXPECT_NO_THROW(models().find(row.model));
    EXPECT_TRUE(row.top1 > 0 && row.top1 < 1 && row.dense_top1 > 0 && row.dense_top1 < 1)
        << row.sparsifier;
  }
}

}  // namespace
}  // namespace tw::test
