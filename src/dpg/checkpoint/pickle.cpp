#include "dpg/checkpoint/pickle.h"

#include <bit>
#include <ios>

namespace dpg::checkpoint {
namespace {

// Far above what a checkpoint needs (some 15 values per tensor), and low enough to bound memory and time.
constexpr std::size_t kMaxValues = 1u << 21, kMaxItems = 1u << 23, kMaxStack = 1u << 20, kMaxMarks = 1u << 16;
constexpr Ref kNothing = UINT32_MAX;

class Machine {
 public:
  Machine(Bytes bytes, const std::string& file) : in_(bytes, file) {}

  PickleDocument run() {
    check(in_.read<std::uint8_t>("the pickle") == 0x80, in_.file(),
          " has no pickle of protocol 2 or later at its place");
    check_protocol();
    while (true) {
      const auto opcode = in_.read<std::uint8_t>("the pickle");
      if (opcode == '.') break;
      execute(opcode);
    }
    document_.root = pop();
    document_.size = in_.position();
    return std::move(document_);
  }

 private:
  template <class... Parts>
  void require(bool holds, const Parts&... parts) const {
    check(holds, in_.file(), " has a damaged pickle (byte ", in_.position(), "): ", parts...);
  }

  void check_protocol() {
    const int protocol = in_.read<std::uint8_t>("the pickle");
    check(protocol >= 2 && protocol <= 5, in_.file(), " uses pickle protocol ", protocol,
          "; 2 to 5 are read");
  }

  Ref add(Value value) {
    check(document_.values.size() < kMaxValues, in_.file(), " has a pickle with more than ", kMaxValues,
          " values");
    document_.values.push_back(std::move(value));
    return static_cast<Ref>(document_.values.size() - 1);
  }

  void push(Ref ref) {
    check(stack_.size() < kMaxStack, in_.file(), " has a pickle with more than ", kMaxStack, " open values");
    stack_.push_back(ref);
  }

  void push_new(Value value) { push(add(std::move(value))); }

  // Values below the innermost mark are not within reach.
  std::size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }

  Ref top() const {
    require(stack_.size() > floor(), "it takes a value where there is none");
    return stack_.back();
  }

  Ref pop() {
    const Ref ref = top();
    stack_.pop_back();
    return ref;
  }

  std::vector<Ref> pop_last(std::size_t count) {
    require(stack_.size() - floor() >= count, "it takes values where there are none");
    std::vector<Ref> items(stack_.end() - static_cast<std::ptrdiff_t>(count), stack_.end());
    stack_.resize(stack_.size() - count);
    return items;
  }

  std::vector<Ref> pop_to_mark() {
    require(!marks_.empty(), "it closes a group that was never opened");
    std::vector<Ref> items = pop_last(stack_.size() - marks_.back());
    marks_.pop_back();
    return items;
  }

  void open_mark() {
    check(marks_.size() < kMaxMarks, in_.file(), " has a pickle nested deeper than ", kMaxMarks, " levels");
    marks_.push_back(stack_.size());
  }

  // Containers can share items, so that their total is bounded apart from the number of values.
  void count_items(std::size_t count) {
    items_ += count;
    check(items_ <= kMaxItems, in_.file(), " has a pickle with more than ", kMaxItems,
          " list and dict items");
  }

  template <class T>
  T& mutable_top(const char* what) {
    T* value = std::get_if<T>(&document_.values[top()]);
    require(value != nullptr, "it adds items to something that is no ", what);
    return *value;
  }

  void push_sequence(std::vector<Ref> items, bool grows) {
    count_items(items.size());
    push_new(Sequence{std::move(items), grows});
  }

  void append(const std::vector<Ref>& items) {
    count_items(items.size());
    auto& sequence = mutable_top<Sequence>("list");
    require(sequence.grows, "it adds items to a tuple");
    sequence.items.insert(sequence.items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<Ref>& flat) {
    require(flat.size() % 2 == 0, "a dict has a key without a value");
    count_items(flat.size());
    auto& items = mutable_top<Dict>("dict").items;
    for (std::size_t i = 0; i < flat.size(); i += 2) items.emplace_back(flat[i], flat[i + 1]);
  }

  void push_dict(const std::vector<Ref>& flat) {
    push_new(Dict{});
    set_items(flat);
  }

  void push_long(std::uint64_t size) {
    const Bytes digits = in_.take(size, "a number in the pickle");
    if (digits.size() > 8) return push_new(WideInteger{as_text(digits)});
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < digits.size(); ++i)
      value |= std::to_integer<std::uint64_t>(digits[i]) << (8 * i);
    const bool negative = !digits.empty() && (digits.back() & std::byte{0x80}) != std::byte{0};
    if (negative && digits.size() < 8) value |= ~std::uint64_t{0} << (8 * digits.size());
    push_new(static_cast<std::int64_t>(value));
  }

  void push_double() {  // the one big-endian value of the format
    auto bits = in_.read<std::uint64_t>("a number in the pickle");
    std::uint64_t swapped = 0;
    for (int i = 0; i < 8; ++i, bits >>= 8) swapped = (swapped << 8) | (bits & 0xff);
    push_new(std::bit_cast<double>(swapped));
  }

  void push_text(std::uint64_t size) { push_new(Text{as_text(in_.take(size, "a text in the pickle"))}); }
  void push_blob(std::uint64_t size) { push_new(Blob{in_.take(size, "bytes in the pickle")}); }

  void push_global(std::string_view module, std::string_view name) {
    const AllowedGlobal* allowed = find_allowed_global(module, name);
    check(allowed != nullptr, in_.file(), " asks for the Python object ", printable(module), ".",
          printable(name),
          ", which no plain checkpoint needs; nothing from a file is executed, so save only the weights"
          " (torch.save(model.state_dict(), ...)) and open that file");
    push_new(Global{allowed});
  }

  void push_stack_global() {
    const auto* name = document_.get<Text>(pop());
    const auto* module = document_.get<Text>(pop());
    require(name != nullptr && module != nullptr, "a Python name is no text");
    push_global(module->utf8, name->utf8);
  }

  void push_call() {
    const Ref arguments = pop();
    const auto* callable = document_.get<Global>(pop());
    const auto* list = document_.get<Sequence>(arguments);
    require(callable != nullptr && list != nullptr, "it calls something that is no function");
    if (callable->global->kind == GlobalKind::ordered_dict) return push_ordered_dict(*list);
    push_new(Call{callable->global, arguments});
  }

  // OrderedDict() or, from Python 2, OrderedDict([[key, value], ...]).
  void push_ordered_dict(const Sequence& arguments) {
    std::vector<Ref> flat;
    if (!arguments.items.empty()) {
      const auto* pairs = document_.get<Sequence>(arguments.items[0]);
      require(pairs != nullptr, "an OrderedDict is made of something that is no list");
      count_items(pairs->items.size());
      for (const Ref item : pairs->items) {
        const auto* pair = document_.get<Sequence>(item);
        require(pair != nullptr && pair->items.size() == 2, "an OrderedDict has an item that is no pair");
        flat.insert(flat.end(), pair->items.begin(), pair->items.end());
      }
    }
    push_dict(flat);
  }

  // State is what Python would set as attributes (a module's version, say): nothing that is read here.
  void drop_state() {
    pop();
    const Ref target = top();
    require(document_.get<Dict>(target) != nullptr || document_.get<Call>(target) != nullptr,
            "it sets the state of something that has none");
  }

  void put(std::size_t index) {
    const Ref ref = top();
    check(index < kMaxValues, in_.file(), " has a pickle that numbers its values beyond ", kMaxValues);
    if (index >= memo_.size()) memo_.resize(index + 1, kNothing);
    memo_[index] = ref;
  }

  void get(std::size_t index) {
    require(index < memo_.size() && memo_[index] != kNothing, "it refers to value ", index,
            ", which does not exist");
    push(memo_[index]);
  }

  void execute(std::uint8_t opcode) {
    switch (opcode) {
      // Structure.
      case 0x80:
        return check_protocol();
      case 0x95:
        in_.take(8, "a frame of the pickle");
        return;  // frames only help to read ahead
      case '(':
        return open_mark();
      case '0':
        pop();
        return;
      case '1':
        pop_to_mark();
        return;
      case '2':
        return push(top());
      // Plain values.
      case 'N':
        return push_new(None{});
      case 0x88:
        return push_new(true);
      case 0x89:
        return push_new(false);
      case 'J':
        return push_new(std::int64_t{read<std::int32_t>()});
      case 'K':
        return push_new(std::int64_t{read<std::uint8_t>()});
      case 'M':
        return push_new(std::int64_t{read<std::uint16_t>()});
      case 0x8a:
        return push_long(read<std::uint8_t>());
      case 0x8b:
        return push_long(read<std::uint32_t>());
      case 'G':
        return push_double();
      case 'U':
      case 0x8c:
        return push_text(read<std::uint8_t>());
      case 'T':
      case 'X':
        return push_text(read<std::uint32_t>());
      case 0x8d:
        return push_text(read<std::uint64_t>());
      case 'C':
        return push_blob(read<std::uint8_t>());
      case 'B':
        return push_blob(read<std::uint32_t>());
      case 0x8e:
      case 0x96:
        return push_blob(read<std::uint64_t>());
      // Containers.
      case ')':
        return push_sequence({}, false);
      case 't':
        return push_sequence(pop_to_mark(), false);
      case 0x85:
      case 0x86:
      case 0x87:
        return push_sequence(pop_last(opcode - 0x84u), false);
      case 0x91:
        return push_sequence(pop_to_mark(), false);  // frozenset
      case ']':
      case 0x8f:
        return push_sequence({}, true);  // list, set
      case 'l':
        return push_sequence(pop_to_mark(), true);
      case 'a':
        return append(pop_last(1));
      case 'e':
      case 0x90:
        return append(pop_to_mark());  // list, set
      case '}':
        return push_dict({});
      case 'd':
        return push_dict(pop_to_mark());
      case 's':
        return set_items(pop_last(2));
      case 'u':
        return set_items(pop_to_mark());
      // What Python would import, call or load from elsewhere.
      case 'c': {
        const std::string_view module = in_.line("a Python name");
        return push_global(module, in_.line("a Python name"));
      }
      case 0x93:
        return push_stack_global();
      case 'R':
      case 0x81:
        return push_call();
      case 'b':
        return drop_state();
      case 'Q':
        return push_new(Persistent{pop()});
      // The memo.
      case 'q':
        return put(read<std::uint8_t>());
      case 'r':
        return put(read<std::uint32_t>());
      case 0x94:
        return put(memo_.size());  // numbers values in order
      case 'h':
        return get(read<std::uint8_t>());
      case 'j':
        return get(read<std::uint32_t>());
      default:
        fail(in_.file(), " has a pickle with the opcode 0x", std::hex, int{opcode},
             ", which torch does not write; save only the weights (torch.save(model.state_dict(), ...))");
    }
  }

  template <class T>
  T read() {
    return in_.read<T>("a value in the pickle");
  }

  ByteReader in_;
  PickleDocument document_;
  std::vector<Ref> stack_;
  std::vector<std::size_t> marks_;  // heights of the stack
  std::vector<Ref> memo_;
  std::size_t items_ = 0;
};

}  // namespace

PickleDocument read_pickle(Bytes bytes, const std::string& file) {
  return Machine(bytes, file).run();
}

}  // namespace dpg::checkpoint
