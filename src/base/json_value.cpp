#include "base/json_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <ostream>
#include <unordered_map>

namespace weir {
namespace {

using Library = nlohmann::json;

// Hostile objects have many members: a linear search for each would take quadratic time.
constexpr std::size_t kFewMembers = 16;

// If a name is repeated, the last value counts, at the position of the first.
void drop_repeated(Json& object) {
  const std::span<Json::Member> members = object.items();
  if (members.size() < 2) return;
  std::unordered_map<std::string_view, std::size_t> places;
  bool is_repeated = false;
  if (members.size() <= kFewMembers) {
    for (std::size_t i = 1; i < members.size() && !is_repeated; ++i)
      for (std::size_t k = 0; k < i; ++k) is_repeated = is_repeated || members[k].name == members[i].name;
    if (!is_repeated) return;
  }
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto [place, is_new] = places.try_emplace(members[i].name, kept.size());
    if (is_new)
      kept.push_back(i);
    else
      kept[place->second] = i;
  }
  if (kept.size() == members.size()) return;
  Json rest = Json::object();
  for (const std::size_t i : kept) rest.append(std::move(members[i].name), std::move(members[i].value));
  object = std::move(rest);
}

// Builds a value from the events of the library's parser.
class Builder final : public nlohmann::json_sax<Library> {
 public:
  Json result;
  std::string problem;
  std::size_t byte = 0;

  bool null() override { return add(nullptr); }
  bool boolean(bool value) override { return add(value); }
  bool number_integer(std::int64_t value) override { return add(value); }
  bool number_unsigned(std::uint64_t value) override { return add(value); }
  bool number_float(double value, const std::string&) override { return add(value); }
  bool string(std::string& value) override { return add(std::move(value)); }
  bool binary(Library::binary_t&) override { return false; }
  bool key(std::string& name) override {
    name_ = std::move(name);
    return true;
  }
  bool start_object(std::size_t) override { return open(Json::object()); }
  bool start_array(std::size_t) override { return open(Json::array()); }
  bool end_object() override {
    drop_repeated(open_.back().value);
    return close();
  }
  bool end_array() override { return close(); }
  bool parse_error(std::size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    problem = error.what();
    byte = position;
    return false;
  }

 private:
  bool add(Json value) {
    if (open_.empty())
      result = std::move(value);
    else if (Json& into = open_.back().value; into.is_array())
      into.push_back(std::move(value));
    else
      into.append(std::move(name_), std::move(value));
    return true;
  }
  bool open(Json value) {
    if (open_.size() >= static_cast<std::size_t>(Json::kDeepest)) {
      problem = fmt::format("nested more than {} levels deep", Json::kDeepest);
      return false;
    }
    open_.push_back({std::move(name_), std::move(value)});
    return true;
  }
  bool close() {
    Json::Member done = std::move(open_.back());
    open_.pop_back();
    name_ = std::move(done.name);
    return add(std::move(done.value));
  }

  std::vector<Json::Member> open_;  // each with the name it will have in its parent
  std::string name_;
};

const Json kNull;

// Exact for all pairs of kinds: a double cannot represent every integer above 2^53.
std::partial_ordering compare_integers(std::int64_t left, std::uint64_t right) {
  return std::cmp_less(left, right)    ? std::partial_ordering::less
         : std::cmp_equal(left, right) ? std::partial_ordering::equivalent
                                       : std::partial_ordering::greater;
}

}  // namespace

// Appends values to one text.
class JsonWriter {
 public:
  JsonWriter(int indent, bool is_ascii) : indent_(indent), is_ascii_(is_ascii) {}

  void add(const Json& json) {
    switch (json.kind_) {
      case Json::Kind::null:
        text += "null";
        break;
      case Json::Kind::boolean:
        text += json.held_.boolean ? "true" : "false";
        break;
      case Json::Kind::integer:
        fmt::format_to(std::back_inserter(text), "{}", json.held_.integer);
        break;
      case Json::Kind::natural:
        fmt::format_to(std::back_inserter(text), "{}", json.held_.natural);
        break;
      case Json::Kind::real:
        add_real(json.held_.real);
        break;
      case Json::Kind::string:
        add_string(*json.held_.string);
        break;
      case Json::Kind::array:
        add_list(*json.held_.array, '[', ']');
        break;
      case Json::Kind::object:
        add_list(*json.held_.object, '{', '}');
        break;
    }
  }

  std::string text;

 private:
  void add_real(double value) {
    if (!std::isfinite(value)) {
      text += "null";
      return;
    }
    char digits[64];
    text.append(digits, nlohmann::detail::to_chars(digits, digits + sizeof digits, value));
  }

  void add_string(const std::string& value) {
    const bool is_plain =
        std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 0x7f && c != '"' && c != '\\'; });
    if (is_plain)
      text.append("\"").append(value).append("\"");
    else
      text += Library(value).dump(-1, ' ', is_ascii_, Library::error_handler_t::replace);
  }

  void add(const Json::Member& member) {
    add_string(member.name);
    text += indent_ < 0 ? ":" : ": ";
    add(member.value);
  }

  template <typename List>
  void add_list(const List& list, char open, char close) {
    text += open;
    ++depth_;
    for (const auto& each : list) {
      if (&each != list.data()) text += ',';
      start_line();
      add(each);
    }
    --depth_;
    if (!list.empty()) start_line();
    text += close;
  }

  void start_line() {
    if (indent_ >= 0) text.append("\n").append(static_cast<std::size_t>(indent_ * depth_), ' ');
  }

  int indent_;
  bool is_ascii_;
  int depth_ = 0;
};

Json::Json(std::string text) : kind_(Kind::string) { held_.string = new std::string(std::move(text)); }
Json::Json(std::string_view text) : Json(std::string(text)) {}
Json::Json(const char* text) : Json(std::string(text)) {}

Json::Json(std::initializer_list<Item> items) {
  const bool is_object = std::all_of(items.begin(), items.end(), [](const Item& item) {
    return item.json.is_array() && item.json.size() == 2 && item.json.front().is_string();
  });
  *this = is_object ? object(items) : array(items);
}

Json Json::array(std::initializer_list<Item> items) {
  Json json;
  Array& list = json.array_to_fill();
  list.reserve(items.size());
  for (const Item& item : items) list.push_back(std::move(item.json));
  return json;
}

Json Json::object(std::initializer_list<Item> members) {
  Json json;
  json.object_to_fill().reserve(members.size());
  for (const Item& item : members) {
    Array& pair = item.json.array_to_fill();
    json[pair.at(0).string()] = std::move(pair.at(1));
  }
  return json;
}

Json::Json(const Json& other) : held_(other.held_) {
  if (other.kind_ == Kind::string) held_.string = new std::string(*other.held_.string);
  if (other.kind_ == Kind::array) held_.array = new Array(*other.held_.array);
  if (other.kind_ == Kind::object) held_.object = new Object(*other.held_.object);
  kind_ = other.kind_;
}

void Json::free() noexcept {
  if (kind_ == Kind::string) delete held_.string;
  if (kind_ == Kind::array) delete held_.array;
  if (kind_ == Kind::object) delete held_.object;
}

Json Json::parse(std::string_view text) {
  Builder builder;
  if (Library::sax_parse(text, &builder)) return std::move(builder.result);
  JsonError error(builder.problem);
  error.byte = builder.byte;
  throw error;
}

std::optional<Json> Json::parse_if_valid(std::string_view text) {
  Builder builder;
  if (!Library::sax_parse(text, &builder)) return std::nullopt;
  return std::move(builder.result);
}

std::string Json::dump(int indent, bool is_ascii) const {
  JsonWriter writer(indent, is_ascii);
  writer.add(*this);
  return std::move(writer.text);
}

const char* Json::type_name() const noexcept {
  constexpr const char* kNames[] = {"null", "boolean", "number", "number", "number", "string", "array", "object"};
  return kNames[static_cast<int>(kind_)];
}

void Json::refuse(const char* wanted) const {
  throw JsonError(fmt::format("{} where {} is expected", type_name(), wanted));
}

bool Json::boolean() const {
  if (kind_ != Kind::boolean) refuse("a boolean");
  return held_.boolean;
}

double Json::number() const {
  switch (kind_) {
    case Kind::boolean:
      return held_.boolean ? 1 : 0;
    case Kind::integer:
      return static_cast<double>(held_.integer);
    case Kind::natural:
      return static_cast<double>(held_.natural);
    case Kind::real:
      return held_.real;
    default:
      refuse("a number");
  }
}

std::int64_t Json::integer(std::int64_t lowest, std::int64_t highest) const {
  std::int64_t value = 0;
  bool is_held = true;
  if (kind_ == Kind::integer) {
    value = held_.integer;
  } else if (kind_ == Kind::natural) {
    is_held = std::in_range<std::int64_t>(held_.natural);
    if (is_held) value = static_cast<std::int64_t>(held_.natural);
  } else {
    const double real = number();
    is_held = real >= -0x1p63 && real < 0x1p63;
    if (is_held) value = static_cast<std::int64_t>(real);
  }
  if (!is_held || value < lowest || value > highest) throw JsonError(fmt::format("{} is out of range", dump()));
  return value;
}

std::uint64_t Json::natural(std::uint64_t highest) const {
  std::uint64_t value = 0;
  bool is_held = true;
  if (kind_ == Kind::natural) {
    value = held_.natural;
  } else if (kind_ == Kind::integer) {
    is_held = held_.integer >= 0;
    if (is_held) value = static_cast<std::uint64_t>(held_.integer);
  } else {
    const double real = number();
    is_held = real > -1 && real < 0x1p64;
    if (is_held) value = static_cast<std::uint64_t>(real);
  }
  if (!is_held || value > highest) throw JsonError(fmt::format("{} is out of range", dump()));
  return value;
}

const std::string& Json::string() const {
  if (kind_ != Kind::string) refuse("a string");
  return *held_.string;
}

std::string& Json::string() {
  if (kind_ != Kind::string) refuse("a string");
  return *held_.string;
}

const Json::Array& Json::elements() const {
  if (kind_ != Kind::array) refuse("an array");
  return *held_.array;
}

Json::Array& Json::array_to_fill() {
  if (kind_ == Kind::null) {
    held_.array = new Array;
    kind_ = Kind::array;
  }
  if (kind_ != Kind::array) refuse("an array");
  return *held_.array;
}

Json::Object& Json::object_to_fill() {
  if (kind_ == Kind::null) {
    held_.object = new Object;
    kind_ = Kind::object;
  }
  if (kind_ != Kind::object) refuse("an object");
  return *held_.object;
}

const Json* Json::find_member(std::string_view name) const noexcept {
  for (const Member& member : items())
    if (member.name == name) return &member.value;
  return nullptr;
}

Json& Json::operator[](std::string_view name) {
  Object& object = object_to_fill();
  if (const Json* found = find_member(name)) return const_cast<Json&>(*found);
  return object.emplace_back(Member{std::string(name), Json()}).value;
}

const Json& Json::operator[](std::string_view name) const {
  if (kind_ != Kind::object) refuse("an object");
  const Json* found = find_member(name);
  return found ? *found : kNull;
}

Json& Json::at(std::string_view name) { return const_cast<Json&>(std::as_const(*this).at(name)); }

const Json& Json::at(std::string_view name) const {
  if (kind_ != Kind::object) refuse("an object");
  const Json* found = find_member(name);
  if (!found) throw JsonError(fmt::format("\"{}\" is missing", name));
  return *found;
}

Json& Json::element(std::size_t index) {
  Array& list = array_to_fill();
  if (index >= list.size()) list.resize(index + 1);
  return list[index];
}

const Json& Json::existing(std::size_t index) const {
  if (kind_ == Kind::object && index < held_.object->size()) return (*held_.object)[index].value;
  const Array& list = elements();
  if (index >= list.size()) throw JsonError(fmt::format("element {} of {}", index, list.size()));
  return list[index];
}

std::string Json::value(std::string_view name, const char* otherwise) const {
  return value<std::string>(name, otherwise);
}

std::size_t Json::size() const noexcept {
  switch (kind_) {
    case Kind::null:
      return 0;
    case Kind::array:
      return held_.array->size();
    case Kind::object:
      return held_.object->size();
    default:
      return 1;
  }
}

Json::iterator Json::begin() {
  if (kind_ == Kind::array) return iterator(held_.array->data());
  if (kind_ == Kind::object) return iterator(held_.object->data());
  return iterator(this);
}

Json::iterator Json::find(std::string_view name) {
  iterator place = end();
  if (const Json* found = find_member(name))
    for (place = begin(); &*place != found;) ++place;
  return place;
}

std::span<Json::Member> Json::items() {
  return kind_ == Kind::object ? std::span<Member>(*held_.object) : std::span<Member>();
}

std::span<const Json::Member> Json::items() const { return const_cast<Json&>(*this).items(); }

void Json::push_back(Json value) { array_to_fill().push_back(std::move(value)); }

void Json::append(std::string name, Json value) {
  object_to_fill().push_back(Member{std::move(name), std::move(value)});
}

void Json::update(Json other) {
  if (other.items().size() <= kFewMembers) {
    for (Member& member : other.items()) (*this)[member.name] = std::move(member.value);
    return;
  }
  object_to_fill();
  for (Member& member : other.items()) append(std::move(member.name), std::move(member.value));
  drop_repeated(*this);
}

std::size_t Json::erase(std::string_view name) {
  return std::erase_if(object_to_fill(), [&](const Member& member) { return member.name == name; });
}

void Json::erase(const iterator& place) {
  const std::ptrdiff_t index = place - begin();
  if (kind_ == Kind::object)
    held_.object->erase(held_.object->begin() + index);
  else
    array_to_fill().erase(array_to_fill().begin() + index);
}

void Json::erase_element(std::size_t index) {
  existing(index);  // throws if it does not exist
  erase(begin() + static_cast<std::ptrdiff_t>(index));
}

void Json::clear() noexcept {
  if (kind_ == Kind::string) held_.string->clear();
  if (kind_ == Kind::array) held_.array->clear();
  if (kind_ == Kind::object) held_.object->clear();
}

bool operator==(const Json& left, const Json& right) {
  using Kind = Json::Kind;
  if (left.is_number() && right.is_number()) return (left <=> right) == 0;
  if (left.kind_ != right.kind_) return false;
  switch (left.kind_) {
    case Kind::boolean:
      return left.held_.boolean == right.held_.boolean;
    case Kind::string:
      return *left.held_.string == *right.held_.string;
    case Kind::array:
      return *left.held_.array == *right.held_.array;
    case Kind::object:
      return *left.held_.object == *right.held_.object;
    default:
      return true;
  }
}

std::partial_ordering operator<=>(const Json& left, const Json& right) {
  using Kind = Json::Kind;
  if (!left.is_number() || !right.is_number()) {
    if (left.kind_ != right.kind_) return left.kind_ <=> right.kind_;
    if (left.kind_ == Kind::boolean) return left.held_.boolean <=> right.held_.boolean;
    if (left.kind_ == Kind::string) return *left.held_.string <=> *right.held_.string;
    if (left.kind_ == Kind::array) return *left.held_.array <=> *right.held_.array;
    if (left.kind_ == Kind::object)
      return std::lexicographical_compare_three_way(
          left.held_.object->begin(), left.held_.object->end(), right.held_.object->begin(), right.held_.object->end(),
          [](const Json::Member& one, const Json::Member& other) -> std::partial_ordering {
            if (one.name != other.name) return one.name <=> other.name;
            return one.value <=> other.value;
          });
    return std::partial_ordering::equivalent;
  }
  if (left.kind_ == Kind::real || right.kind_ == Kind::real) return left.number() <=> right.number();
  if (left.kind_ == right.kind_)
    return left.kind_ == Kind::integer ? left.held_.integer <=> right.held_.integer
                                       : left.held_.natural <=> right.held_.natural;
  if (left.kind_ == Kind::integer) return compare_integers(left.held_.integer, right.held_.natural);
  return 0 <=> compare_integers(right.held_.integer, left.held_.natural);
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << json.dump(); }

}  // namespace weir
