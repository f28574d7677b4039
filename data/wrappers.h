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

/// The samples with label map[l] in place of l; `classes` labels in all. Label -1 stays.
std::shared_ptr<const Dataset> relabel(std::shared_ptr<const Dataset> samples,
                                       std::vector<int32_t> map, int64_t classes);

/// Descriptions of the samples that were left out. Safe from several threads.
class SkipLog {
 public:
  void add(std::string line);
  /// The lines added since the last call.
  std::vector<std::string> take();

 private:
  std::mutex mutex_;
  std::vector<std::string> lines_;
};

/// Replaces each sample that throws BadSampleError by a black image with label -1, and adds its
/// description to `log`, once per sample.
std::shared_ptr<const Dataset> skip_bad(std::shared_ptr<const Dataset> samples,
                                        std::shared_ptr<SkipLog> log);

}  // namespace tw
