// Device memory of the emulator. It is protected from host code: kernels and copies open it while
// they run.
#pragma once

#include <cstddef>

namespace tw::emulator {

/// The kind of memory of an address.
enum class Place { host, pinned, device };

/// bytes: from `address` to the end of its allocation; 0 for pageable host memory.
struct Location {
  Place place;
  size_t bytes;
};
Location locate(const void* address);
/// Whether an address is in the range of device memory.
bool is_device_memory(const void* address);

/// Null when the memory is exhausted. The bytes are not initialised to zero.
void* allocate_device(size_t bytes);
void* allocate_pinned(size_t bytes);
/// False when `memory` is no allocation.
bool release(void* memory);

inline constexpr size_t kDeviceBytes = size_t{8} << 30;
size_t device_bytes_free();

/// Makes device memory accessible to this process during its lifetime.
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace tw::emulator
