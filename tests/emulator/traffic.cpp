// The functions that a compiler calls at each access for the thread sanitizer, instead of its
// library.
#include "tests/emulator/traffic.h"

#include <cstddef>

#include "tests/emulator/memory.h"

namespace tw::emulator {

namespace {

uint64_t bytes = 0;  // kernels run one at a time

void count(const void* address, size_t size) {
  if (is_device_memory(address)) bytes += size;
}

}  // namespace

uint64_t bytes_accessed() { return bytes; }

}  // namespace tw::emulator

using tw::emulator::count;

#define TW_ACCESS(size)                                                     \
  void __tsan_read##size(void* address) { count(address, size); }           \
  void __tsan_write##size(void* address) { count(address, size); }          \
  void __tsan_unaligned_read##size(void* address) { count(address, size); } \
  void __tsan_unaligned_write##size(void* address) { count(address, size); }

extern "C" {
TW_ACCESS(1)
TW_ACCESS(2)
TW_ACCESS(4)
TW_ACCESS(8)
TW_ACCESS(16)
void __tsan_read_range(void* address, size_t size) { count(address, size); }
void __tsan_write_range(void* address, size_t size) { count(address, size); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
}
