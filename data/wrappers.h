// Data sets made of another data set: augmented, a range of it, with other labels, or without its
// bad samples.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "data/dataset.h"

namespace tw {

/// Augments by pad-4 random crop and horizontal flip (augment_crop_flip).
std::shared_ptr<const Dataset> crop_flip(std::shared_ptr<const Dataset> images);

/// Samples [begin, end) of another data set, as samples 0 to end - begin - 1.
std::shared_ptr<const Dataset> subset(std::shared_ptr<const Dataset> whole, size_t begin,
                                      size_t end);
/// The samples of another data set that are held out, `count` of them at even distances, or those
/// that remain.
std::shared_ptr<const Dataset> every_nth(std::shared_ptr<const Dataset> whole, size_t count,
                                         bool held_out);

/// The samples that are held out, `share` of those of each class (rounded; at least one, if it has
/// several, and never all), or those that remain. Which ones follows from `labels`, those of all
/// samples, alone.
std::shared_ptr<const Dataset> share_of_classes(std::shared_ptr<const Dataset> whole,
                                                std::span<const int32_t> labels, double share,
                                                bool held_out);

/// The samples with label map[l] in place of l; `classes` labels in all. Label -1 stays.
std::shared_ptr<const Dataset> relabel(std::shared_ptr<const Dataset> samples,
                                       std::vector<int32_t> map, int64_t classes);

/// The bad samples that were skipped. Safe from several threads.
class SkipLog {
 public:
  struct Entry {
    std::string class_name, description;
  };
  void add(Entry entry);
  /// The entries added since the last call.
  std::vector<Entry> take();

 private:
  std::mutex mutex_;
  std::vector<Entry> entries_;
};

/// Skips each sample that throws BadSampleError, and adds it to `log`, once per sample.
/// get_augmented() returns another sample in its place, drawn from (seed, epoch, i) alone, so that
/// a batch is always full of valid samples: the mean of its gradients and the statistics of batch
/// norm are those of as many images, however the batch is divided among ranks and micro-batches.
/// UserError when all samples are bad. get() returns a black image with label -1.
std::shared_ptr<const Dataset> skip_bad(std::shared_ptr<const Dataset> samples,
                                        std::shared_ptr<SkipLog> log);

}  // namespace tw
