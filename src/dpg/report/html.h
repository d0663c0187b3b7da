// Reports as HTML pages that stand alone: pictures and plots are inside, nothing is loaded, no script runs.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "dpg/image/image.h"
#include "dpg/report/trace.h"

namespace dpg {

struct CaptionedPicture {
  Image picture;
  std::string caption;  // also read out to those who cannot see the picture
};

using Facts = std::vector<std::pair<std::string, std::string>>;  // name, value

// A table in which methods are compared: the best value of a column is bold, the second underlined.
enum class Emphasis { none, best, second };
struct TableCell {
  std::string text;
  Emphasis emphasis = Emphasis::none;
  int span = 1;  // columns; a cell that spans several holds words, and wraps
};
struct ColumnGroup {
  std::string title;  // above its columns; may be empty
  std::vector<std::string> columns;
};

struct PictureRow {
  std::string label;
  std::vector<CaptionedPicture> pictures;  // one for each column; an empty picture leaves its place empty
};

// Built from top to bottom. Every text is escaped. Pictures become PNG: a build without libpng says so.
class Page {
 public:
  explicit Page(const std::string& title);

  Page& heading(const std::string& text);
  Page& text(const std::string& paragraph);
  Page& facts(const Facts& facts);
  // Every row is as long as the header. A column of numbers, with or without a unit, is aligned to the right.
  Page& table(const std::vector<std::string>& header, const std::vector<std::vector<std::string>>& rows);
  // Columns in groups, each group with a title above it. The cells of a row span all columns together.
  Page& grouped_table(const std::vector<ColumnGroup>& groups,
                      const std::vector<std::vector<TableCell>>& rows);
  // Pictures under column titles, each `wide` pixels wide at most as in pictures().
  Page& picture_table(const std::vector<std::string>& header, const std::vector<PictureRow>& rows,
                      int wide = 128);
  // A row that wraps. Pictures are enlarged by the largest whole number with which they are at most `wide`
  // pixels wide; larger ones keep their size, or shrink to the window's. Values that are not finite are shown
  // black, and the caption says so.
  Page& pictures(const std::vector<CaptionedPicture>& pictures, int wide = 256);
  // `svg` goes in as it is.
  Page& figure(const std::string& svg, const std::string& caption = "");

  std::string html() const;

 private:
  std::string title_, body_;
};

// The facts, the residual over the steps against the noise floor, the strength of the guidance where there is
// one, and the estimates of the clean picture on the way. What the trace itself knows (method, operator,
// noise, residual at the end) is listed before `facts`, unless these hold a fact of the same name.
std::string trace_page(const Trace& trace, const Facts& facts = {});

}  // namespace dpg
