// Memory of the emulated GPU, which the host cannot touch: kernels and copies open it while they
// run.
#pragma once

#include <cstddef>

namespace tw::emulator {

/// Where an address lies.
enum class Place { host, pinned, device };

/// Bytes from `address` on that belong to the same piece of memory; 0 for other memory of the host.
struct Location {
  Place place;
  size_t bytes;
};
Location locate(const void* address);

/// Null when that much is not left. What it holds at first is not zero.
void* allocate_device(size_t bytes);
void* allocate_pinned(size_t bytes);
/// False: no such piece of memory.
bool release(void* memory);

inline constexpr size_t kDeviceBytes = size_t{8} << 30;
size_t device_bytes_free();

/// Opens the GPU's memory to this process as long as it lives.
class Access {
 public:
  Access();
  ~Access();
  Access(const Access&) = delete;
  Access& operator=(const Access&) = delete;
};

}  // namespace tw::emulator
