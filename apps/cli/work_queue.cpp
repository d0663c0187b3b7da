#include "work_queue.h"

#include <cstdlib>
#include <mutex>

#include "dpg/core/error.h"
#include "mpi_queue.h"

namespace dpg::cli {
namespace {

class AloneQueue : public WorkQueue {
 public:
  int rank() const override { return 0; }
  int ranks() const override { return 1; }
  int agree(int value) override { return value; }
  void deal(std::vector<std::size_t> pieces) override { pieces_ = std::move(pieces); }
  std::optional<std::size_t> next() override {
    if (next_ >= pieces_.size()) return {};
    return pieces_[next_++];
  }
  void stop() override { next_ = pieces_.size(); }
  void wait() override {}
  void give_up() override {}

 private:
  std::vector<std::size_t> pieces_;
  std::size_t next_ = 0;
};

int number_in(const char* variable, int fallback) {
  const char* text = std::getenv(variable);
  return text == nullptr ? fallback : std::atoi(text);
}

// How many processes the launcher says that there are. Asked without MPI, so that a program that was started
// by hand never touches it.
int launched_ranks() {
  for (const char* variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const int ranks = number_in(variable, 0); ranks > 0) return ranks;
  // Slurm's srun with PMIx says only which rank this is; the number of tasks is Slurm's own.
  return std::getenv("PMIX_RANK") != nullptr ? number_in("SLURM_STEP_NUM_TASKS", 1) : 1;
}

}  // namespace

std::unique_ptr<WorkQueue> WorkQueue::join() {
  if (launched_ranks() <= 1) return std::make_unique<AloneQueue>();
  auto queue = make_mpi_queue();
  check(queue != nullptr, "this dpg was built without MPI, and ", launched_ranks(),
        " of it were started together; build it where OpenMPI is installed, or give each a --shard K/N");
  return queue;
}

int local_rank() {
  for (const char* variable : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID"})
    if (std::getenv(variable) != nullptr) return number_in(variable, 0);
  return 0;
}

}  // namespace dpg::cli
