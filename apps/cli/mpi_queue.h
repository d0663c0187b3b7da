// The work queue over MPI. In a file of its own, which is all of the program that sees MPI.
#pragma once

#include <memory>

#include "work_queue.h"

namespace dpg::cli {

// Null in a build without MPI.
std::unique_ptr<WorkQueue> make_mpi_queue();

}  // namespace dpg::cli
