// MPI's C binding. Without the macro, Open MPI's header brings its C++ binding, too, which needs
// another library.
#pragma once

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>
