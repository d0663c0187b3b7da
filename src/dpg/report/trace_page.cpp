#include <algorithm>
#include <cmath>

#include "dpg/core/error.h"
#include "dpg/report/html.h"
#include "dpg/report/markup.h"
#include "dpg/report/plot.h"

namespace dpg {
namespace {

constexpr int kFrameWidth = 144;  // ten estimates of 128 pixels fill two lines

bool has_floor(const Trace& trace) {
  return drawable(trace.noise_floor, AxisScale::log);
}

Facts known_facts(const Trace& trace) {
  Facts facts = {{"method", trace.method}, {"operator", trace.op}, {"noise", trace.noise}};
  if (has_floor(trace)) facts.emplace_back("noise floor", markup::significant(trace.noise_floor, 4));
  if (!trace.steps.empty()) {
    const double last = trace.steps.back().residual;
    std::string text = markup::significant(last, 4);
    if (has_floor(trace) && std::isfinite(last)) {
      text += " (" + markup::significant(last / trace.noise_floor, 3) + " times the noise floor)";
    }
    facts.emplace_back("steps", std::to_string(trace.steps.size()));
    facts.emplace_back("residual at the end", text);
  }
  return facts;
}

// What the caller says goes over what the trace knows.
Facts merged(const Trace& trace, const Facts& given) {
  Facts all = known_facts(trace);
  std::erase_if(all, [&](const auto& fact) {
    const auto same = [&](const auto& other) { return other.first == fact.first; };
    return fact.second.empty() || std::any_of(given.begin(), given.end(), same);
  });
  all.insert(all.end(), given.begin(), given.end());
  return all;
}

PlotSeries over_time(const Trace& trace, double TraceStep::*value) {
  PlotSeries series;
  for (const TraceStep& step : trace.steps) {
    series.x.push_back(step.t);
    series.y.push_back(step.*value);
  }
  return series;
}

std::string residual_plot(const Trace& trace) {
  Plot plot{"Residual over the time steps", "time step t", "residual \u2016y \u2212 A(x\u2080)\u2016"};
  plot.y_scale = AxisScale::log;
  plot.x_falls = true;
  if (has_floor(trace)) {
    plot.title += dpg::str(", against the noise floor of ", markup::significant(trace.noise_floor, 4));
    plot.reference = PlotReference{trace.noise_floor, "noise floor"};
  }
  plot.series = {over_time(trace, &TraceStep::residual)};
  return plot_svg(plot);
}

// On a log axis where the strengths differ by more than the eye can tell apart on a linear one.
std::string strength_plot(const Trace& trace) {
  Plot plot{"Strength of the guidance over the time steps", "time step t", "strength"};
  plot.x_falls = true;
  plot.height = 280;
  plot.series = {over_time(trace, &TraceStep::strength)};
  std::vector<double> finite;
  std::copy_if(plot.series[0].y.begin(), plot.series[0].y.end(), std::back_inserter(finite),
               [](double value) { return std::isfinite(value); });
  const auto [least, most] = std::minmax_element(finite.begin(), finite.end());
  if (least == finite.end()) return "";
  if (*least > 0 && *most > 100 * *least) plot.y_scale = AxisScale::log;
  return plot_svg(plot);
}

}  // namespace

std::string trace_page(const Trace& trace, const Facts& facts) {
  Page page(trace.title.empty() ? "Restoration" : trace.title);
  page.facts(merged(trace, facts));

  page.heading("Residual");
  if (trace.steps.empty()) {
    page.text("No step was recorded.");
  } else {
    page.text(
        "How far the estimate of the clean picture, x\u2080, is from explaining the measurement y, at each "
        "time step; the "
        "restoration runs from left to right.");
    page.text(
        has_floor(trace)
            ? "The noise floor is the residual to be expected of the true picture. A restoration that "
              "explains the measurement ends near it: well above, it misses something; well below, "
              "it fits the noise."
            : "The noise floor, the residual to be expected of the true picture, is zero or not known.");
    page.figure(residual_plot(trace));
    if (const std::string strength = strength_plot(trace); !strength.empty()) {
      page.heading("Strength of the guidance").figure(strength);
    }
  }

  if (!trace.frames.empty()) {
    page.heading("Estimates of the clean picture on the way");
    std::vector<CaptionedPicture> pictures;
    for (const TraceFrame& frame : trace.frames)
      pictures.push_back({frame.picture, dpg::str("t = ", frame.t)});
    page.pictures(pictures, kFrameWidth);
  }
  return page.html();
}

}  // namespace dpg
