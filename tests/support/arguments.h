// argc and argv for tests of option parsers.
#pragma once

#include <string>
#include <vector>

namespace tw::test {

class Arguments {
 public:
  explicit Arguments(std::vector<std::string> flags) : texts_(std::move(flags)) {
    texts_.insert(texts_.begin(), "program");
    for (std::string& text : texts_) values_.push_back(text.data());
    values_.push_back(nullptr);
  }
  Arguments(const Arguments&) = delete;
  int count() const { return static_cast<int>(texts_.size()); }
  char** values() { return values_.data(); }

 private:
  std::vector<std::string> texts_;
  std::vector<char*> values_;
};

}  // namespace tw::test
