// Streams of the emulated GPU. What is queued runs as late as the rules allow, or, drawn now and
// then, at once: whoever does not wait for what he needs is found out either way.
#pragma once

#include <driver_types.h>

#include <functional>

namespace tw::emulator {

/// Queues work on a stream, or adds it to the graph that the stream captures.
cudaError_t queue(cudaStream_t stream, std::function<void()> work);

/// The same for a kernel.
cudaError_t launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> kernel);

/// Runs all that is queued, on every stream.
void finish_all();
/// Runs all that is queued on a stream.
void finish(cudaStream_t stream);

/// Whether the calling thread captures: it may not allocate, free or wait then, and has spoiled the
/// capture when it tries.
bool refused_in_capture();
/// Notes an error for cudaGetLastError and returns it.
cudaError_t report(cudaError_t status);

}  // namespace tw::emulator
