// Who does which piece of work: one process alone, or the ranks of an MPI job, which ask the first one for a
// piece whenever they are free. Knows nothing of what a piece is.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

namespace dpg::cli {

class WorkQueue {
 public:
  // Under mpirun or srun the ranks of that job, otherwise this process alone. Throws under mpirun where the
  // program was built without MPI: every rank would do everything.
  static std::unique_ptr<WorkQueue> join();
  virtual ~WorkQueue() = default;

  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  // The first rank's value, on every rank. Each rank must call it.
  virtual int agree(int value) = 0;
  // On the first rank, once: the pieces there are, in the order in which they are handed out.
  virtual void deal(std::vector<std::size_t> pieces) = 0;
  // A piece for this rank; none when all are handed out. Whoever asks has finished what it had before.
  virtual std::optional<std::size_t> next() = 0;
  // No more pieces for anybody.
  virtual void stop() = 0;
  // On the first rank: waits until every other rank has nothing more to do.
  virtual void wait() = 0;
  // After a failure: ends the whole job, which would otherwise wait for this rank. Returns in a process
  // alone.
  virtual void give_up() = 0;
};

// This rank's number among those on the same machine, 0 without MPI: which of its GPUs to take.
int local_rank();

}  // namespace dpg::cli
