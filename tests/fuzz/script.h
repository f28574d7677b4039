// ScriptedCommunicator: one rank whose peers send what the fuzzer says.
#pragma once

#include <algorithm>
#include <cstring>

#include "comm/communicator.h"
#include "engine/core/error.h"

namespace tw::fuzz {

/// The input of a fuzzer, read from the front. Zeros after its end.
class Script {
 public:
  Script(const uint8_t* data, size_t size) : rest_(data, size) {}

  template <class T>
  T number() {
    T value{};
    take(std::as_writable_bytes(std::span(&value, 1)));
    return value;
  }
  void take(std::span<std::byte> out) {
    const size_t n = std::min(out.size(), rest_.size());
    if (n > 0) std::memcpy(out.data(), rest_.data(), n);
    std::fill(out.begin() + static_cast<ptrdiff_t>(n), out.end(), std::byte{});
    rest_ = rest_.subspan(n);
  }
  bool at_end() const { return rest_.empty(); }
  std::span<const uint8_t> rest() const { return rest_; }

 private:
  std::span<const uint8_t> rest_;
};

class ScriptedCommunicator : public Communicator {
 public:
  ScriptedCommunicator(Script& script, int rank, int size)
      : script_(script), rank_(rank), size_(size) {}
  /// Any rank of two to four, by a number of the input.
  ScriptedCommunicator(Script& script, uint8_t place)
      : ScriptedCommunicator(script, place / 3 % (2 + place % 3), 2 + place % 3) {}

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  const char* transport() const override { return "script"; }
  void abort(const char*, int) override {}

 protected:
  /// An incoming message has a byte n: below 32 it is as long as the receiver allows, else n - 32
  /// bytes. As in the transports, a message that is too long is a Fault, and so is the end of the
  /// input.
  size_t do_exchange(Context&, int, ConstBytes, int from, Bytes in) override {
    if (from < 0) return 0;
    check<Fault>(!script_.at_end(), "[script] rank {} is gone", from);
    const size_t n = script_.number<uint8_t>(), bytes = n < 32 ? in.size() : n - 32;
    check<Fault>(bytes <= in.size(), "[script] {} bytes do not fit", bytes);
    script_.take(in.first(bytes));
    return bytes;
  }

 private:
  Script& script_;
  int rank_, size_;
};

}  // namespace tw::fuzz
