// Emulated CUDA streams. Queued work runs as late as possible or, at random, at once. Both make
// tests fail when a synchronisation is missing.
#pragma once

#include <driver_types.h>

#include <cstdint>
#include <functional>

namespace tw::emulator {

/// Queues work on a stream, or adds it to the graph that the stream captures.
cudaError_t queue(cudaStream_t stream, std::function<void()> work);

/// Called before work is queued. A test may set it while no other thread uses the device.
std::function<void()>& before_queue();

/// Queues a kernel; an error when the configuration is invalid.
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel);
/// Number of kernels queued since the start of the process.
uint64_t launches();

/// Runs all queued work of every stream.
void finish_all();
/// Runs all queued work of a stream.
void finish(cudaStream_t stream);

/// Whether the calling thread captures a graph. If so, invalidates the capture. Called by
/// operations that a capture forbids (allocate, free, wait).
bool refused_in_capture();
/// Stores an error for cudaGetLastError and returns it.
cudaError_t report(cudaError_t status);

}  // namespace tw::emulator
