// Tally: files and samples counted by kind, with the first of each kind.
#pragma once

#include <map>
#include <string>

namespace tw {

class Tally {
 public:
  struct Group {
    size_t count = 0;
    std::string first;
  };
  void add(const std::string& kind, const std::string& what);
  /// Adds the counts of `other`, whose first ones come after those of this tally.
  void add(const Tally& other);
  const std::map<std::string, Group>& groups() const { return groups_; }
  bool empty() const { return groups_.empty(); }
  /// Of all kinds.
  size_t count() const;

 private:
  std::map<std::string, Group> groups_;
};

/// `2 hidden (a/.x first), 1 without the extension of an image (a/notes.txt)`
std::string left_out_text(const Tally& by_reason);
/// A line for each class: `skipped 2 damaged images of n01, the first a.jpg: an empty file`.
std::string skipped_text(const Tally& by_class);

}  // namespace tw
