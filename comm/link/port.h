// Port: the busy times of one port of a node.
#pragma once

#include <algorithm>
#include <array>

namespace tw {

class Port {
 public:
  /// Books the port for `seconds`, in the earliest free interval that starts at or after `ready`.
  /// Returns its start. A message may overtake one that was booked earlier but is ready later.
  double book(double ready, double seconds) {
    double start = ready;
    size_t i = 0;
    for (; i < count_ && start + seconds > busy_[i].begin; ++i)
      start = std::max(start, busy_[i].end);
    if (seconds > 0) insert(i, {start, start + seconds});
    return start;
  }

 private:
  struct Busy {
    double begin, end;
  };

  /// Inserts an interval between busy_[i-1] and busy_[i]; merges adjacent ones.
  void insert(size_t i, Busy added) {
    const bool after = i > 0 && busy_[i - 1].end == added.begin;
    const bool before = i < count_ && busy_[i].begin == added.end;
    if (after && before) {
      busy_[i - 1].end = busy_[i].end;
      erase(i);
    } else if (after) {
      busy_[i - 1].end = added.end;
    } else if (before) {
      busy_[i].begin = added.begin;
    } else {
      std::copy_backward(busy_.begin() + i, busy_.begin() + count_, busy_.begin() + count_ + 1);
      busy_[i] = added;
      if (++count_ < busy_.size()) return;
      busy_[0].end = busy_[1].end;  // full: forgets the oldest gap
      erase(1);
    }
  }

  void erase(size_t i) {
    std::copy(busy_.begin() + i + 1, busy_.begin() + count_, busy_.begin() + i);
    --count_;
  }

  std::array<Busy, 64> busy_{};  // ascending, with gaps between them
  size_t count_ = 0;
};

}  // namespace tw
