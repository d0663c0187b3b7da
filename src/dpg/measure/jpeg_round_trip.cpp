#include "dpg/measure/jpeg_round_trip.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "dpg/core/error.h"

#ifdef DPG_HAVE_JPEG
#include <cstdio>
// libjpeg's header uses FILE and size_t without including what declares them.
#include <jpeglib.h>

#include <csetjmp>
#include <cstdlib>
#endif

namespace dpg {

#ifdef DPG_HAVE_JPEG
namespace {

// libjpeg reports errors by longjmp, so nothing with a destructor is made inside a `guarded` step.
struct ErrorManager : jpeg_error_mgr {
  std::jmp_buf escape;
  char message[JMSG_LENGTH_MAX] = "";
};

[[noreturn]] void on_error(j_common_ptr info) {
  auto* errors = static_cast<ErrorManager*>(info->err);
  errors->format_message(info, errors->message);
  std::longjmp(errors->escape, 1);
}

template <class Step>
void guarded(ErrorManager& errors, const Step& step) {
  if (setjmp(errors.escape) != 0) fail("libjpeg could not code a picture: ", errors.message);
  step();
}

void start(ErrorManager& errors) {
  jpeg_std_error(&errors);
  errors.error_exit = on_error;
  errors.emit_message = [](j_common_ptr, int) {};
}

struct Encoder {
  Encoder() {
    start(errors);
    info.err = &errors;
  }
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  ~Encoder() {
    jpeg_destroy_compress(&info);
    std::free(data);
  }
  jpeg_compress_struct info{};
  ErrorManager errors;
  unsigned char* data = nullptr;  // libjpeg allocates it by malloc
  unsigned long size = 0;
};

struct Decoder {
  Decoder() {
    start(errors);
    info.err = &errors;
  }
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  ~Decoder() { jpeg_destroy_decompress(&info); }
  jpeg_decompress_struct info{};
  ErrorManager errors;
};

void encode(Encoder& encoder, std::uint8_t* pixels, const JpegPictures& shape, int quality,
            bool half_chroma) {
  guarded(encoder.errors, [&] {
    auto& info = encoder.info;
    jpeg_create_compress(&info);
    jpeg_mem_dest(&info, &encoder.data, &encoder.size);
    info.image_width = static_cast<JDIMENSION>(shape.width);
    info.image_height = static_cast<JDIMENSION>(shape.height);
    info.input_components = static_cast<int>(shape.channels);
    info.in_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_set_defaults(&info);
    jpeg_set_quality(&info, quality, TRUE);
    const int sampling =
        half_chroma && shape.channels == 3 ? 2 : 1;  // luma samples per chroma sample, each way
    info.comp_info[0].h_samp_factor = info.comp_info[0].v_samp_factor = sampling;
    jpeg_start_compress(&info, TRUE);
    for (std::int64_t y = 0; y < shape.height; ++y) {
      JSAMPROW row = pixels + y * shape.width * shape.channels;
      jpeg_write_scanlines(&info, &row, 1);
    }
    jpeg_finish_compress(&info);
  });
}

void decode(const Encoder& encoded, std::uint8_t* pixels, const JpegPictures& shape) {
  Decoder decoder;
  guarded(decoder.errors, [&] {
    auto& info = decoder.info;
    jpeg_create_decompress(&info);
    jpeg_mem_src(&info, encoded.data, encoded.size);
    jpeg_read_header(&info, TRUE);
    info.out_color_space = shape.channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    jpeg_start_decompress(&info);
    for (std::int64_t y = 0; y < shape.height; ++y) {
      JSAMPROW row = pixels + y * shape.width * shape.channels;
      jpeg_read_scanlines(&info, &row, 1);
    }
    jpeg_finish_decompress(&info);
  });
}

// Runs task(0 .. count - 1) on up to `threads` threads; throws the first failure when all have stopped.
template <class Task>
void in_parallel(std::int64_t count, int threads, const Task& task) {
  std::atomic<std::int64_t> next = 0;
  std::exception_ptr failure;
  std::mutex failure_lock;
  const auto work = [&] {
    try {
      for (std::int64_t i; (i = next++) < count;) task(i);
    } catch (...) {
      next = count;
      const std::lock_guard hold(failure_lock);
      if (!failure) failure = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

bool jpeg_available() {
  return true;
}

void jpeg_round_trip(const JpegPictures& pictures, int quality, bool half_chroma, int threads) {
  const std::int64_t size = pictures.height * pictures.width * pictures.channels;
  in_parallel(pictures.count, threads, [&](std::int64_t i) {
    Encoder encoder;
    encode(encoder, pictures.pixels + i * size, pictures, quality, half_chroma);
    decode(encoder, pictures.pixels + i * size, pictures);
  });
}

#else

bool jpeg_available() {
  return false;
}

void jpeg_round_trip(const JpegPictures&, int, bool, int) {
  fail("this build has no JPEG codec; install libjpeg's development files and configure again");
}

#endif

}  // namespace dpg
