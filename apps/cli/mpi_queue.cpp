// Two messages: a rank asks (no content), the first rank answers with a piece or with kNone. The first rank
// works too: a thread of its own answers, and is the only one that speaks MPI from deal() to wait().
#include "mpi_queue.h"

#ifdef DPG_MPI

#define OMPI_SKIP_MPICXX 1
#include <mpi.h>

#include <chrono>
#include <mutex>
#include <thread>

#include "dpg/core/error.h"

namespace dpg::cli {
namespace {

constexpr int kAsk = 1, kAnswer = 2;
constexpr long long kNone = -1;
// MPI's own waiting spins; restoring needs the core more than a rank needs its answer at once.
constexpr auto kPause = std::chrono::milliseconds(5);

class MpiQueue : public WorkQueue {
 public:
  MpiQueue() {
    int provided = MPI_THREAD_SINGLE;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    check(provided >= MPI_THREAD_SERIALIZED,
          "this MPI can't be used from a second thread; build it with threads");
  }

  ~MpiQueue() override {
    if (dealer_.joinable()) dealer_.join();
    MPI_Finalize();
  }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  int agree(int value) override {
    MPI_Bcast(&value, 1, MPI_INT, 0, MPI_COMM_WORLD);
    return value;
  }

  void deal(std::vector<std::size_t> pieces) override {
    pieces_ = std::move(pieces);
    dealer_ = std::thread([this] { answer_all(); });
  }

  std::optional<std::size_t> next() override {
    const long long piece = rank_ == 0 ? take() : ask();
    if (piece == kNone) return {};
    return static_cast<std::size_t>(piece);
  }

  void stop() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    next_ = pieces_.size();
  }

  void wait() override {
    if (dealer_.joinable()) dealer_.join();
  }

  void give_up() override { MPI_Abort(MPI_COMM_WORLD, 1); }

 private:
  long long take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return next_ < pieces_.size() ? static_cast<long long>(pieces_[next_++]) : kNone;
  }

  long long ask() {
    if (done_) return kNone;
    char nothing = 0;
    long long piece = kNone;
    MPI_Send(&nothing, 1, MPI_CHAR, 0, kAsk, MPI_COMM_WORLD);
    MPI_Recv(&piece, 1, MPI_LONG_LONG, 0, kAnswer, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    done_ = piece == kNone;
    return piece;
  }

  // Until every other rank was told that there is nothing left. A rank asks when it has finished: so then all
  // have.
  void answer_all() {
    for (int working = ranks_ - 1; working > 0;) {
      int there = 0;
      MPI_Status status;
      MPI_Iprobe(MPI_ANY_SOURCE, kAsk, MPI_COMM_WORLD, &there, &status);
      if (there == 0) {
        std::this_thread::sleep_for(kPause);
        continue;
      }
      char nothing = 0;
      MPI_Recv(&nothing, 1, MPI_CHAR, status.MPI_SOURCE, kAsk, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      const long long piece = take();
      MPI_Send(&piece, 1, MPI_LONG_LONG, status.MPI_SOURCE, kAnswer, MPI_COMM_WORLD);
      if (piece == kNone) --working;
    }
  }

  int rank_ = 0, ranks_ = 1;
  bool done_ = false;
  std::vector<std::size_t> pieces_;
  std::size_t next_ = 0;
  std::mutex mutex_;
  std::thread dealer_;
};

}  // namespace

std::unique_ptr<WorkQueue> make_mpi_queue() {
  return std::make_unique<MpiQueue>();
}

}  // namespace dpg::cli

#else

namespace dpg::cli {

std::unique_ptr<WorkQueue> make_mpi_queue() {
  return nullptr;
}

}  // namespace dpg::cli

#endif
