#include "dpg/measure/spec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <limits>

#include "dpg/core/error.h"

namespace dpg {
namespace {

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void expect_message(const std::function<void()>& action, const std::string& part) {
  const std::string message = message_of(action);
  EXPECT_NE(message.find(part), std::string::npos) << "got: " << message << "\nwanted: " << part;
}

TEST(Spec, SplitsNameKeysAndPlaces) {
  const Spec spec = parse_spec(" blur : 3 , size=61,boundary = reflect ");
  EXPECT_EQ(spec.name, "blur");
  ASSERT_EQ(spec.arguments.size(), 3u);
  EXPECT_EQ(spec.arguments[0].key, "");
  EXPECT_EQ(spec.arguments[0].value, "3");
  EXPECT_EQ(spec.arguments[2].key, "boundary");
  EXPECT_EQ(spec.arguments[2].value, "reflect");
}

TEST(Spec, SplitsCompositionsInOrder) {
  const std::vector<Spec> specs = parse_specs("blur:3 | inpaint:box|jpeg:10");
  ASSERT_EQ(specs.size(), 3u);
  EXPECT_EQ(specs[0].name, "blur");
  EXPECT_EQ(specs[2].name, "jpeg");
  expect_message([] { parse_spec("gaussian:1 | none"); }, "names 2 things");
}

TEST(Spec, AnyValueSurvivesTheRoundTrip) {
  for (const std::string value :
       {"plain", "a,b", "a|b", "k=v", "say \"hi\"", "back\\slash", " edges ", "./run --x 1,2"}) {
    const Spec spec{"exec", {{"", value}, {"key", value}}};
    const Spec again = parse_spec(to_text(spec));
    ASSERT_EQ(again.arguments.size(), 2u) << to_text(spec);
    EXPECT_EQ(again.arguments[0].key, "");
    EXPECT_EQ(again.arguments[0].value, value);
    EXPECT_EQ(again.arguments[1].value, value);
  }
}

TEST(Spec, NumbersReadBackExactly) {
  for (const double value :
       {0.1, 1.0 / 3, 1e-300, 3.0, 123456789.125, std::numeric_limits<double>::denorm_min()})
    EXPECT_EQ(std::strtod(number_text(value).c_str(), nullptr), value) << number_text(value);
  EXPECT_EQ(number_text(3), "3");
  EXPECT_EQ(number_text(0.05), "0.05");
}

TEST(Spec, RefusesWhatIsNoSpec) {
  for (const std::string text : {"", "  ", "a||b", "a |", ":3", "a:", "a:1,,2", "a:\"open", "a:x\"y\"",
                                 "a:\"x\"y", "a:=3", "a:k=", "exec:./p a=b"})
    EXPECT_THROW(parse_specs(text), Error) << text;
}

TEST(Spec, EditDistanceCountsEdits) {
  EXPECT_EQ(edit_distance("blur", "blur"), 0u);
  EXPECT_EQ(edit_distance("blurr", "blur"), 1u);
  EXPECT_EQ(edit_distance("bulr", "blur"), 1u);  // neighbours swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3u);
  EXPECT_EQ(edit_distance("", "abc"), 3u);
}

TEST(OptionReader, FillsByPlaceAndByKey) {
  const OptionReader options(parse_spec("blur:3,boundary=zero,61"), {"sigma", "size", "boundary"});
  EXPECT_EQ(options.number("sigma", 0, 0, 10), 3);
  EXPECT_EQ(options.integer("size", 0, 1, 99), 61);
  EXPECT_EQ(options.choice("boundary", "reflect", {"reflect", "zero"}), "zero");
  EXPECT_FALSE(options.given("other"));
  EXPECT_EQ(OptionReader(parse_spec("blur"), {"sigma"}).number("sigma", 2.5, 0, 10), 2.5);
}

TEST(OptionReader, NamesTheNearestValidAnswer) {
  const auto read = [](const std::string& text) {
    return OptionReader(parse_spec(text), {"sigma", "size", "boundary"});
  };
  expect_message([&] { read("blur:sgima=3"); }, "did you mean \"sigma\"?");
  expect_message([&] { read("blur:3,sigma=3"); }, "given twice");
  expect_message([&] { read("blur:1,2,zero,4"); }, "more values than its options");
  expect_message([&] { read("blur:-1").number("sigma", 3, 0.5, 10); }, "nearest valid value is 0.5");
  expect_message([&] { read("blur:nan").number("sigma", 3, 0.5, 10); }, "is not a number");
  expect_message([&] { read("blur:3x").number("sigma", 3, 0.5, 10); }, "is not a number");
  expect_message([&] { read("blur:size=200").integer("size", 61, 1, 99); }, "nearest valid value is 99");
  expect_message([&] { read("blur:size=6.5").integer("size", 61, 1, 99); }, "not a whole number");
  expect_message(
      [&] {
        read("blur:boundary=refelct").choice("boundary", "zero", {"zero", "reflect"});
      },
      "did you mean \"reflect\"?");
  expect_message([&] { OptionReader(parse_spec("identity:3"), {}); }, "takes no options");
}

}  // namespace
}  // namespace dpg
