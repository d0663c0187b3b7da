// What external_test runs as exec:PROGRAM BEHAVIOUR: a forward operator y = x / 2 that behaves well, or badly
// in one way.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Request {
  std::string header;  // up to the numbers
  std::vector<std::int64_t> shape;
  std::vector<float> numbers;
};

bool read_exactly(void* data, std::size_t size) {
  return std::fread(data, 1, size, stdin) == size;
}

std::vector<std::int64_t> shape_of(const std::string& header) {
  std::vector<std::int64_t> shape;
  const char* at = std::strchr(std::strstr(header.c_str() + 10, "'shape'"), '(') + 1;
  for (char* end; *at != ')'; at = end + std::strspn(end, ", ")) shape.push_back(std::strtoll(at, &end, 10));
  return shape;
}

bool read_request(Request& request, bool with_numbers = true) {
  request.header.assign(10, '\0');
  if (!read_exactly(request.header.data(), 10)) return false;
  const std::size_t length =
      static_cast<unsigned char>(request.header[8]) | static_cast<unsigned char>(request.header[9]) << 8;
  request.header.resize(10 + length);
  if (!read_exactly(request.header.data() + 10, length)) return false;
  request.shape = shape_of(request.header);
  std::size_t count = 1;
  for (const std::int64_t axis : request.shape) count *= static_cast<std::size_t>(axis);
  request.numbers.assign(count, 0);
  return !with_numbers || read_exactly(request.numbers.data(), count * sizeof(float));
}

void write_answer(const std::vector<std::int64_t>& shape, const std::vector<float>& numbers,
                  const char* type = "<f4") {
  std::string header = std::string("{'descr': '") + type + "', 'fortran_order': False, 'shape': (";
  for (const std::int64_t axis : shape) header += std::to_string(axis) + ",";
  header += "), }\n";
  std::string start("\x93NUMPY\x01\x00", 8);
  start += static_cast<char>(header.size() & 0xFF);
  start += static_cast<char>(header.size() >> 8);
  std::fwrite(start.data(), 1, start.size(), stdout);
  std::fwrite(header.data(), 1, header.size(), stdout);
  std::fwrite(numbers.data(), sizeof(float), numbers.size(), stdout);
  std::fflush(stdout);
}

void halve(Request& request) {
  for (float& number : request.numbers) number /= 2;
}

// Answers while reading, in small pieces: whoever writes everything before reading anything waits for ever.
void stream_halves() {
  Request request;
  while (read_request(request, false)) {
    write_answer(request.shape, {});
    std::vector<float> piece(1000);
    for (std::size_t done = 0, size; done < request.numbers.size(); done += size) {
      size = std::min(piece.size(), request.numbers.size() - done);
      if (!read_exactly(piece.data(), size * sizeof(float))) return;
      for (float& number : piece) number /= 2;
      std::fwrite(piece.data(), sizeof(float), size, stdout);
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string behaviour = argc > 1 ? argv[1] : "";
  if (behaviour == "stream") {
    stream_halves();
    return 0;
  }
  if (behaviour == "deaf") {  // never reads
    pause();
  }
  Request request;
  for (int round = 0; read_request(request); ++round) {
    const bool bad = round > 0;  // the first request, which asks for the shape, is answered well
    halve(request);
    if (bad && behaviour == "exit") {
      std::fprintf(stderr, "the lens fell off\n");
      return 3;
    }
    if (bad && behaviour == "abort") std::abort();
    if (bad && behaviour == "hang") pause();
    if (bad && behaviour == "half") {
      request.numbers.resize(request.numbers.size() / 2);
      write_answer(request.shape, request.numbers);
      return 0;
    }
    if (bad && behaviour == "print") std::printf("processing...\n");
    if (bad && behaviour == "type") {
      write_answer(request.shape, request.numbers, "<f8");
      continue;
    }
    if (bad && behaviour == "shape") request.shape.back() += 1;
    if (bad && behaviour == "huge") request.shape.assign(5, std::int64_t{1} << 40);
    if (bad && behaviour == "nan") request.numbers[0] = std::strtof("nan", nullptr);
    if (behaviour == "chatter")
      for (int i = 0; i < 5000; ++i) std::fprintf(stderr, "line %d of a program that talks a lot\n", i);
    if (behaviour == "sum") {  // one number for each picture
      std::vector<float> sums(static_cast<std::size_t>(request.shape[0]));
      for (std::size_t i = 0; i < request.numbers.size(); ++i)
        sums[i * sums.size() / request.numbers.size()] += request.numbers[i];
      write_answer({request.shape[0], 1}, sums);
      continue;
    }
    if (behaviour == "pid") {  // who answered
      write_answer({request.shape[0], 1}, std::vector<float>(static_cast<std::size_t>(request.shape[0]),
                                                             static_cast<float>(getpid())));
      continue;
    }
    // The copy that gets the picture with ones stumbles over it.
    if (behaviour == "ones" && request.numbers[0] == 0.5f) return 4;
    write_answer(request.shape, request.numbers);
    if (bad && behaviour == "twice") write_answer(request.shape, request.numbers);
  }
  return 0;
}
