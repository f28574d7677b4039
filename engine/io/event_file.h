// EventFile: scalars and histograms that TensorBoard shows. The file is a sequence of records (a
// length, data, and the checksum of each); the data is the message Event of TensorFlow's
// event.proto in the wire format of protocol buffers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "engine/io/file.h"

namespace tw {

class ProtobufMessage;

/// Counts of values in adjacent bins.
struct Histogram {
  double least = 0, greatest = 0, number = 0, sum = 0, squares = 0;
  std::vector<double> ends, counts;  ///< of each bin: its upper end, and the values in it
  /// Adds a bin [from, to), beyond the bins so far.
  void add(double from, double to, double count);
};

class EventFile {
 public:
  /// The name of the file in a run folder: TensorBoard reads files whose names contain `tfevents`.
  static constexpr const char* kName = "events.out.tfevents.thinwire";

  /// Creates the file, or continues an existing one: drops the events from the first whose step
  /// exceeds `keep_through`, and a record that is damaged or not complete with all after it. Rows
  /// of the table `again` are dropped from step `keep_through` on.
  EventFile(const std::filesystem::path& path, int64_t keep_through, const std::string& again = "");

  /// Appends values with their names; Fault when the disk is full.
  void scalars(int64_t step, const std::vector<std::pair<std::string, double>>& values);
  /// Appends the cells of a row of a table but the first, as TABLE/COLUMN (`epoch/val_top1`); empty
  /// cells are left out.
  void row(int64_t step, const std::string& table, const std::string& header,
           const std::string& row);
  void histogram(int64_t step, const std::string& name, const Histogram& values);
  /// Flushes to the disk what was written; Fault when that fails.
  void sync() const { out_.sync(); }

 private:
  void write(int64_t step, const ProtobufMessage& summary);

  GrowingFile out_;
};

}  // namespace tw
