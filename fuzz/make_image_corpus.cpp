// Writes seeds for fuzz_image into a folder: every format that this build writes, and variants that it only
// reads.
#include <cstdio>
#include <exception>
#include <filesystem>
#include <string>

#include "dpg/core/error.h"
#include "dpg/core/file.h"
#include "dpg/image/image.h"
#include "dpg/image/test_files.h"

namespace {

using dpg::Image;
using dpg::test::make_exif;
using dpg::test::make_png;
using dpg::test::noise_image;
using dpg::test::png_chunk;
using dpg::test::smooth_image;

class Corpus {
 public:
  explicit Corpus(std::filesystem::path folder) : folder_(std::move(folder)) {
    std::filesystem::create_directories(folder_);
  }

  void add(const std::string& name, const std::string& text) {
    dpg::write_text(folder_ / name, text);
    ++count_;
  }
  void add(const std::string& name, const dpg::test::ByteVector& bytes) {
    add(name, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  int count() const { return count_; }

 private:
  std::filesystem::path folder_;
  int count_ = 0;
};

void add_png(Corpus& corpus) {
  for (const int depth : {8, 16}) {
    for (int channels = 1; channels <= 4; ++channels) {
      corpus.add(dpg::str("c", channels, "d", depth, ".png"),
                 dpg::encode_image(noise_image(channels, 5, 7, 256), ".png", {.bit_depth = depth}));
    }
  }
  const std::string palette = png_chunk("PLTE", std::string("\x00\x80\xFF\x10\x20\x30", 6));
  corpus.add("palette.png", make_png({.width = 2,
                                      .colour = 3,
                                      .before_pixels = palette + png_chunk("tRNS", "\x40"),
                                      .scanlines = std::string("\0\1\0", 3)}));
  for (const int depth : {1, 2, 4}) {
    corpus.add(
        dpg::str("grey", depth, ".png"),
        make_png({.width = 2, .height = 2, .depth = depth, .scanlines = std::string("\0\x9C\0\x36", 4)}));
  }
  corpus.add("interlaced.png", make_png({.width = 3,
                                         .height = 3,
                                         .interlaced = true,
                                         .scanlines = std::string("\0a\0b\0cd\0e\0f\0ghi", 15)}));
  corpus.add("exif.png", make_png({.before_pixels = png_chunk("eXIf", make_exif(6, false)),
                                   .scanlines = std::string("\0a", 2)}));
}

void add_jpeg(Corpus& corpus) {
  const auto colour = dpg::encode_image(smooth_image(3, 17, 20), ".jpg", {.jpeg_quality = 50});
  corpus.add("grey.jpg", dpg::encode_image(smooth_image(1, 9, 12), ".jpg", {.jpeg_quality = 50}));
  corpus.add("colour.jpg", colour);
  for (const int orientation : {2, 6}) {
    corpus.add(dpg::str("exif", orientation, ".jpg"),
               dpg::test::with_exif(colour, make_exif(orientation, orientation == 6)));
  }
}

void add_webp(Corpus& corpus) {
  for (const int channels : {3, 4}) {
    for (const bool lossy : {false, true}) {
      corpus.add(dpg::str("c", channels, lossy ? "lossy" : "lossless", ".webp"),
                 dpg::encode_image(smooth_image(channels, 9, 12), ".webp", {.webp_lossy = lossy}));
    }
  }
}

void add_npy_and_pnm(Corpus& corpus) {
  corpus.add("grey.pgm", dpg::encode_image(noise_image(1, 3, 4, 256), ".pgm"));
  corpus.add("deep.ppm", dpg::encode_image(noise_image(3, 3, 4, 256), ".ppm", {.bit_depth = 16}));
  corpus.add("text.pgm", "P2 # comment\n2 2\n7\n0 1\n# row\n2 7\n");
  corpus.add("text.ppm", "P3\n1 1 65535\n0 500 65535\n");
  corpus.add("float.npy", dpg::encode_image(noise_image(3, 2, 3, 256), ".npy"));
  for (const std::string type : {"|u1", "|b1", "<u2", ">u2", "<i4", "<i8", "<f2", ">f4", "<f8"}) {
    for (const char* order : {"True", "False"}) {
      std::string header =
          dpg::str("{'descr': '", type, "', 'fortran_order': ", order, ", 'shape': (2, 1, 3), }");
      header.resize(117, ' ');
      const std::size_t size = static_cast<std::size_t>(type[2] - '0');
      corpus.add(dpg::str(type.substr(1), type[0] == '>' ? "big" : "", order, ".npy"),
                 std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + "\n" + std::string(6 * size, '\0'));
    }
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  Corpus corpus(argv[1]);
  if (dpg::codec_available("png")) add_png(corpus);
  if (dpg::codec_available("jpeg")) add_jpeg(corpus);
  if (dpg::codec_available("webp")) add_webp(corpus);
  add_npy_and_pnm(corpus);
  std::printf("%d seeds written to %s\n", corpus.count(), argv[1]);
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
