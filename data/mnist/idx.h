// The idx format of MNIST and of data sets in its layout: four files, each as it is or packed by
// gzip (.gz).
#pragma once

#include <filesystem>

#include "data/dataset.h"

namespace tw {

/// A data set of ten classes of 28 x 28 gray images in this layout.
struct IdxFiles {
  std::string name;    ///< of the data set
  std::string help;    ///< its line in --list
  std::string usual;   ///< default folder, below that of all data: torchvision's
  std::string source;  ///< the address of the files, for the user who misses one
  float mean = 0, deviation = 1;
  std::vector<std::string> class_names;
  bool fashion = false;  ///< whether `fashion` is part of the path of its files
};

/// Reads train-images-idx3-ubyte, train-labels-idx1-ubyte and, with val_size 0, t10k-images and
/// t10k-labels, in config.dir or its folder `usual`, into memory. Training images are not
/// augmented. UserError when a file is missing, is no idx file, or has other sizes, or a label is
/// above 9.
DataSplit read_idx_files(const IdxFiles& files, const DataConfig& config);

/// Registers the data set. A folder is recognised by the training images in its folder `usual`, or
/// in itself, where the path tells, since the files of all these data sets have the same names.
bool add_idx_data_set(const IdxFiles& files);

}  // namespace tw
