// Confusion: how often images of each class are taken for each class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tw {

class Confusion {
 public:
  static constexpr size_t kMostClasses = 10'000;  ///< their pairs take 8 bytes each

  /// UserError beyond kMostClasses.
  explicit Confusion(std::vector<std::string> names);

  /// Counts an image by the logits of its classes. Of equal ones the lower class comes first.
  void add(size_t label, std::span<const float> logits);

  struct Class {
    std::string name;
    int64_t images = 0;     ///< that have this label
    int64_t predicted = 0;  ///< that are taken for this class
    int64_t correct = 0;    ///< both
    std::string mistaken;   ///< the other class for which most of its images are taken, if any
    int64_t mistakes = 0;   ///< how many
    int64_t equally_mistaken = 0;  ///< further classes for which as many are taken
    /// correct / images, correct / predicted; nothing without any.
    std::optional<double> recall() const { return ratio(images); }
    std::optional<double> precision() const { return ratio(predicted); }

   private:
    std::optional<double> ratio(int64_t of) const {
      if (of == 0) return std::nullopt;
      return static_cast<double>(correct) / static_cast<double>(of);
    }
  };
  std::vector<Class> classes() const;

  int64_t images() const { return images_; }
  int64_t top1() const { return top1_; }  ///< correct ones
  int64_t top5() const { return top5_; }  ///< whose label is among the five largest

  /// A row for each label, with its name and the number of images taken for each class.
  std::string matrix_csv() const;
  /// A row for each class: name, images, predicted, correct, precision, recall.
  std::string classes_csv() const;

 private:
  std::vector<std::string> names_;
  std::vector<int64_t> counts_;  // [label][prediction]
  int64_t images_ = 0, top1_ = 0, top5_ = 0;
};

}  // namespace tw
