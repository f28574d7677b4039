// ScriptedCommunicator: one rank whose peers send what the fuzzer says. RecordingCommunicator
// writes such a script from what the peers of an honest run send.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>

#include "comm/communicator_decorator.h"
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
  static constexpr size_t kWhole = 32;

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
  /// An incoming message has a number n of two bytes: below kWhole it is as long as the receiver
  /// allows, else n - kWhole bytes. As in the transports, a message that is too long is a Fault,
  /// and so is the end of the input.
  size_t do_exchange(Context&, int, ConstBytes, int from, Bytes in) override {
    if (from < 0) return 0;
    check<Fault>(!script_.at_end(), "[script] rank {} is gone", from);
    const size_t n = script_.number<uint16_t>(), bytes = n < kWhole ? in.size() : n - kWhole;
    check<Fault>(bytes <= in.size(), "[script] {} bytes do not fit", bytes);
    script_.take(in.first(bytes));
    return bytes;
  }

 private:
  Script& script_;
  int rank_, size_;
};

/// Another communicator; keeps what comes in as a script.
class RecordingCommunicator : public CommunicatorDecorator {
 public:
  explicit RecordingCommunicator(Communicator& inner) : CommunicatorDecorator(inner) {}
  const std::string& script() const { return script_; }

 protected:
  size_t do_exchange(Context& ctx, int to, ConstBytes out, int from, Bytes in) override {
    const size_t bytes = inner_.exchange(ctx, to, out, from, in);
    if (from < 0) return bytes;
    const auto n = bytes == in.size() ? uint16_t{} : static_cast<uint16_t>(bytes + kWhole);
    script_.append(reinterpret_cast<const char*>(&n), sizeof n);
    script_.append(reinterpret_cast<const char*>(in.data()), bytes);
    return bytes;
  }

 private:
  static constexpr size_t kWhole = ScriptedCommunicator::kWhole;
  std::string script_;
};

}  // namespace tw::fuzz
