// The tables of a page that compares methods: numbers in groups of columns, and pictures.
#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/report/html.h"
#include "dpg/report/markup.h"

namespace dpg {
namespace {

using markup::escape;

std::string cell_text(const TableCell& cell) {
  const std::string text = escape(cell.text);
  if (cell.emphasis == Emphasis::best) return "<b>" + text + "</b>";
  if (cell.emphasis == Emphasis::second) return "<u>" + text + "</u>";
  return text;
}

std::string header_of(const std::vector<ColumnGroup>& groups) {
  std::string above = "<tr>", below = "<tr>";
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const char* edge = g > 0 ? " first" : "";
    above += str("<th class=\"group", edge, "\" colspan=\"", groups[g].columns.size(), "\">",
                 escape(groups[g].title), "</th>");
    for (std::size_t c = 0; c < groups[g].columns.size(); ++c)
      below += str("<th scope=\"col\" class=\"", g > 0 ? "number" : "", c == 0 ? edge : "", "\">",
                   escape(groups[g].columns[c]), "</th>");
  }
  const bool titled =
      std::any_of(groups.begin(), groups.end(), [](const auto& g) { return !g.title.empty(); });
  return (titled ? above + "</tr>\n" : "") + below + "</tr>\n";
}

std::string embedded(const CaptionedPicture& captioned, int wide) {
  Image shown = captioned.picture;
  for (float& value : shown.data)
    if (!std::isfinite(value)) value = -1.0f;
  const int scale = std::max(1, wide / shown.width);
  return str("<img", scale > 1 ? " class=\"enlarged\"" : "", " width=\"", shown.width * scale, "\" height=\"",
             shown.height * scale, "\" alt=\"",
             escape(captioned.caption.empty() ? "picture" : captioned.caption), "\" title=\"",
             escape(captioned.caption), "\" src=\"data:image/png;base64,",
             markup::base64(encode_image(shown, ".png")), "\">");
}

}  // namespace

Page& Page::grouped_table(const std::vector<ColumnGroup>& groups,
                          const std::vector<std::vector<TableCell>>& rows) {
  std::vector<bool> starts_group;  // of each column
  for (const ColumnGroup& group : groups)
    for (std::size_t c = 0; c < group.columns.size(); ++c) starts_group.push_back(c == 0);
  body_ +=
      "<div class=\"scroll\"><table class=\"groups\">\n<thead>\n" + header_of(groups) + "</thead>\n<tbody>\n";
  for (const auto& row : rows) {
    body_ += "<tr>";
    std::size_t column = 0;
    for (const TableCell& cell : row) {
      check(cell.span >= 1 && column + static_cast<std::size_t>(cell.span) <= starts_group.size(),
            "a table of ", starts_group.size(), " columns has a longer row");
      const char* edge = column > 0 && starts_group[column] ? " first" : "";
      if (column == 0)
        body_ += "<th scope=\"row\">" + cell_text(cell) + "</th>";
      else
        body_ += str("<td class=\"", cell.span > 1 ? "words" : "number", edge, "\"",
                     cell.span > 1 ? str(" colspan=\"", cell.span, "\"") : "", ">", cell_text(cell), "</td>");
      column += static_cast<std::size_t>(cell.span);
    }
    check(column == starts_group.size(), "a table of ", starts_group.size(), " columns has a row of ",
          column);
    body_ += "</tr>\n";
  }
  body_ += "</tbody>\n</table></div>\n";
  return *this;
}

Page& Page::picture_table(const std::vector<std::string>& header, const std::vector<PictureRow>& rows,
                          int wide) {
  if (rows.empty()) return *this;
  check(codec_available("png"),
        "the report's pictures cannot be embedded: browsers need PNG, which this build lacks; build dpg with "
        "libpng");
  body_ += "<div class=\"scroll\"><table class=\"sheet\">\n<thead><tr><th></th>";
  for (const std::string& title : header) body_ += "<th scope=\"col\">" + escape(title) + "</th>";
  body_ += "</tr></thead>\n<tbody>\n";
  for (const PictureRow& row : rows) {
    check(row.pictures.size() == header.size(), "a table of ", header.size(), " pictures has a row of ",
          row.pictures.size());
    body_ += "<tr><th scope=\"row\">" + escape(row.label) + "</th>";
    for (const CaptionedPicture& picture : row.pictures)
      body_ += picture.picture.data.empty() ? "<td>" + escape(picture.caption) + "</td>"
                                            : "<td>" + embedded(picture, wide) + "</td>";
    body_ += "</tr>\n";
  }
  body_ += "</tbody>\n</table></div>\n";
  return *this;
}

}  // namespace dpg
