// JSON: a small value type of our own, so that sources that handle documents do not compile a JSON library; only
// json_value.cpp uses nlohmann, to parse and to print numbers (docs/adr/0029-own-json-value.md).
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace weir {

// Text that is not JSON, or a value of a different kind than requested.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
  std::size_t byte = 0;  // where the text stopped being JSON; the first byte is 1
};

template <typename T>
concept JsonText = std::convertible_to<const T&, std::string>;
template <typename T>
concept JsonNumber = std::integral<T> || std::floating_point<T>;
template <typename T>
concept JsonPair = requires { requires JsonText<typename T::first_type>; };
template <typename T>
concept JsonList = !JsonText<T> && requires(const T& list) {
  typename T::value_type;
  list.begin() != list.end();
};

// Objects keep the order in which their members were added. A copy is deep.
class Json {
 public:
  struct Item;    // an element of a braced list
  struct Member;  // a name and a value of an object
  template <bool is_const>
  class Walk;
  using iterator = Walk<false>;
  using const_iterator = Walk<true>;
  using value_type = Json;

  Json() noexcept = default;
  Json(std::nullptr_t) noexcept {}
  template <JsonNumber T>
  Json(T value) noexcept {
    if constexpr (std::same_as<T, bool>) {
      kind_ = Kind::boolean;
      held_.boolean = value;
    } else if constexpr (std::floating_point<T>) {
      kind_ = Kind::real;
      held_.real = static_cast<double>(value);
    } else if constexpr (std::is_signed_v<T>) {
      kind_ = Kind::integer;
      held_.integer = value;
    } else {
      kind_ = Kind::natural;
      held_.natural = value;
    }
  }
  Json(std::string text);
  Json(std::string_view text);
  Json(const char* text);
  // A list of values becomes an array; a map with string keys becomes an object.
  template <typename T>
    requires(!std::same_as<T, Json> && JsonList<T>)
  Json(const T& list) : Json(empty_for<typename T::value_type>()) {
    for (const auto& each : list) {
      if constexpr (JsonPair<typename T::value_type>)
        (*this)[each.first] = each.second;
      else
        push_back(static_cast<typename T::value_type>(each));
    }
  }
  // {{"name", value}, ...} becomes an object, any other list an array.
  Json(std::initializer_list<Item> items);
  static Json array(std::initializer_list<Item> items = {});
  static Json object(std::initializer_list<Item> members = {});

  Json(const Json& other);
  Json(Json&& other) noexcept : kind_(std::exchange(other.kind_, Kind::null)), held_(other.held_) {}
  Json& operator=(Json other) noexcept {
    swap(other);
    return *this;
  }
  ~Json() {
    if (kind_ >= Kind::string) free();
  }
  void swap(Json& other) noexcept {
    std::swap(kind_, other.kind_);
    std::swap(held_, other.held_);
  }

  // Throws JsonError for anything but one JSON value, and for nesting deeper than kDeepest.
  static Json parse(std::string_view text);
  static std::optional<Json> parse_if_valid(std::string_view text);
  static constexpr int kDeepest = 100;
  // One line, or `indent` blanks per level. Invalid UTF-8 is replaced, and NaN and infinity become null. With
  // `is_ascii` all other characters are escaped.
  std::string dump(int indent = -1, bool is_ascii = false) const;

  bool is_null() const noexcept { return kind_ == Kind::null; }
  bool is_boolean() const noexcept { return kind_ == Kind::boolean; }
  bool is_number() const noexcept { return is_number_integer() || is_number_float(); }
  bool is_number_integer() const noexcept { return kind_ == Kind::integer || kind_ == Kind::natural; }
  bool is_number_unsigned() const noexcept { return kind_ == Kind::natural; }
  bool is_number_float() const noexcept { return kind_ == Kind::real; }
  bool is_string() const noexcept { return kind_ == Kind::string; }
  bool is_array() const noexcept { return kind_ == Kind::array; }
  bool is_object() const noexcept { return kind_ == Kind::object; }
  bool is_structured() const noexcept { return is_array() || is_object(); }
  const char* type_name() const noexcept;

  // The value as a T; throws JsonError if it is of another kind, or a number that a T cannot hold.
  template <typename T>
  T get() const {
    if constexpr (std::same_as<T, Json>) {
      return *this;
    } else if constexpr (std::same_as<T, bool>) {
      return boolean();
    } else if constexpr (std::floating_point<T>) {
      return static_cast<T>(number());
    } else if constexpr (std::integral<T> && std::is_signed_v<T>) {
      return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
    } else if constexpr (std::integral<T>) {
      return static_cast<T>(natural(std::numeric_limits<T>::max()));
    } else if constexpr (std::same_as<T, std::string>) {
      return string();
    } else {
      T list;
      for (const Json& each : elements()) list.push_back(each.get<typename T::value_type>());
      return list;
    }
  }
  template <typename T>
  void get_to(T& into) const {
    into = get<T>();
  }
  const std::string& string() const;
  std::string& string();

  // Members and elements. A null becomes an object or an array when something is added to it. A `const` object returns
  // null for every name that it lacks.
  Json& operator[](std::string_view name);
  const Json& operator[](std::string_view name) const;
  template <std::integral T>
  Json& operator[](T index) {
    return element(static_cast<std::size_t>(index));
  }
  template <std::integral T>
  const Json& operator[](T index) const {
    return at(index);
  }
  // Throws JsonError if it does not exist.
  Json& at(std::string_view name);
  const Json& at(std::string_view name) const;
  template <std::integral T>
  Json& at(T index) {
    return const_cast<Json&>(std::as_const(*this).at(index));
  }
  template <std::integral T>
  const Json& at(T index) const {
    return existing(static_cast<std::size_t>(index));
  }
  template <typename T>
  T value(std::string_view name, const T& otherwise) const {
    const Json* found = find_member(name);
    return found ? found->get<T>() : otherwise;
  }
  std::string value(std::string_view name, const char* otherwise) const;

  bool contains(std::string_view name) const noexcept { return find_member(name) != nullptr; }
  std::size_t size() const noexcept;  // 1 for a value without elements that is not null
  bool empty() const noexcept { return size() == 0; }
  iterator find(std::string_view name);
  const_iterator find(std::string_view name) const;
  iterator begin();
  iterator end();
  const_iterator begin() const;
  const_iterator end() const;
  // The members of an object; empty for any other value.
  std::span<Member> items();
  std::span<const Member> items() const;
  Json& front() { return at(0); }
  const Json& front() const { return at(0); }
  Json& back() { return at(size() - 1); }
  const Json& back() const { return at(size() - 1); }

  void push_back(Json value);
  template <typename T>
  void emplace_back(T&& value) {
    push_back(Json(std::forward<T>(value)));
  }
  void append(std::string name, Json value);  // the object must not have this member yet
  void update(Json other);                    // adds the members of `other`, replacing those of the same name
  std::size_t erase(std::string_view name);
  void erase(std::integral auto index) { erase_element(static_cast<std::size_t>(index)); }
  void erase(const iterator& place);
  void clear() noexcept;  // empties an array, an object or a text

  // Numbers are equal by value. Objects are equal only if their members have the same order.
  friend bool operator==(const Json& left, const Json& right);
  friend std::partial_ordering operator<=>(const Json& left, const Json& right);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);

 private:
  enum class Kind : std::uint8_t { null, boolean, integer, natural, real, string, array, object };
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;
  friend class JsonWriter;

  template <typename T>
  static Json empty_for() {
    if constexpr (JsonPair<T>)
      return object();
    else
      return array();
  }
  [[noreturn]] void refuse(const char* wanted) const;
  void free() noexcept;
  bool boolean() const;
  double number() const;
  std::int64_t integer(std::int64_t lowest, std::int64_t highest) const;
  std::uint64_t natural(std::uint64_t highest) const;
  const Array& elements() const;
  Array& array_to_fill();
  Object& object_to_fill();
  Json& element(std::size_t index);
  const Json& existing(std::size_t index) const;
  void erase_element(std::size_t index);
  const Json* find_member(std::string_view name) const noexcept;

  Kind kind_ = Kind::null;
  union {
    bool boolean;
    std::int64_t integer;
    std::uint64_t natural;
    double real;
    std::string* string;
    Array* array;
    Object* object;
  } held_{};
};

struct Json::Item {
  template <typename T>
    requires(!std::same_as<std::remove_cvref_t<T>, Item> && std::constructible_from<Json, T>)
  Item(T&& value) : json(std::forward<T>(value)) {}
  Item(std::initializer_list<Item> items) : json(items) {}
  mutable Json json;  // moved out of the list, whose elements are const
};

struct Json::Member {
  std::string name;
  Json value;
  bool operator==(const Member&) const = default;
};

// Iterates over elements of an array or values of an object. Any other value except null is its own only element.
template <bool is_const>
class Json::Walk {
 public:
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Json;
  using difference_type = std::ptrdiff_t;
  using reference = std::conditional_t<is_const, const Json&, Json&>;
  using pointer = std::conditional_t<is_const, const Json*, Json*>;
  using MemberRef = std::conditional_t<is_const, const Member*, Member*>;

  Walk() = default;
  explicit Walk(pointer element) : element_(element) {}
  explicit Walk(MemberRef member) : member_(member) {}
  operator Walk<true>() const { return member_ ? Walk<true>(member_) : Walk<true>(element_); }

  reference operator*() const { return member_ ? member_->value : *element_; }
  pointer operator->() const { return &**this; }
  reference operator[](std::ptrdiff_t offset) const { return *(*this + offset); }
  const std::string& key() const { return member_->name; }
  reference value() const { return **this; }
  Walk& operator+=(std::ptrdiff_t offset) {
    if (member_)
      member_ += offset;
    else
      element_ += offset;
    return *this;
  }
  Walk& operator-=(std::ptrdiff_t offset) { return *this += -offset; }
  Walk& operator++() { return *this += 1; }
  Walk& operator--() { return *this += -1; }
  Walk operator++(int) { return std::exchange(*this, *this + 1); }
  Walk operator--(int) { return std::exchange(*this, *this - 1); }
  friend Walk operator+(Walk from, std::ptrdiff_t offset) { return from += offset; }
  friend Walk operator+(std::ptrdiff_t offset, Walk from) { return from += offset; }
  friend Walk operator-(Walk from, std::ptrdiff_t offset) { return from += -offset; }
  friend std::ptrdiff_t operator-(const Walk& to, const Walk& from) {
    return to.member_ ? to.member_ - from.member_ : to.element_ - from.element_;
  }
  friend bool operator==(const Walk&, const Walk&) = default;
  friend auto operator<=>(const Walk& left, const Walk& right) { return left - right <=> 0; }

 private:
  pointer element_ = nullptr;
  MemberRef member_ = nullptr;
};

inline Json::iterator Json::end() { return begin() + static_cast<std::ptrdiff_t>(size()); }
inline Json::const_iterator Json::begin() const { return const_cast<Json&>(*this).begin(); }
inline Json::const_iterator Json::end() const { return const_cast<Json&>(*this).end(); }
inline Json::const_iterator Json::find(std::string_view name) const { return const_cast<Json&>(*this).find(name); }

}  // namespace weir
