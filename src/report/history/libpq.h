// PostgreSQL's client library, opened when a history is in PostgreSQL: a program that starts everywhere must not need
// it to start. Declares the few entry points that are used; a test compares them with libpq-fe.h.
#pragma once

#include <string>
#include <string_view>

#include "base/vendor_library.h"

namespace weir::history {

// Opaque: PGconn, PGresult, PGcancel. Numbers of libpq-fe.h, which never change.
inline constexpr int kConnectionOk = 0;
inline constexpr int kTuplesOk = 2, kCommandOk = 1, kSingleTuple = 9;
inline constexpr int kFieldOfState = 'C';  // PG_DIAG_SQLSTATE
inline constexpr int kFieldOfMessage = 'M';

struct ConnectionOption {  // PQconninfoOption
  char *keyword, *environment, *compiled, *value, *label, *display;
  int display_size;
};

struct LibPq : VendorLibrary {
  LibPq() : VendorLibrary({"libpq.so.5"}) {}
  void* (*connect)(const char* const* names, const char* const* values, int expand) = need("PQconnectdbParams");
  int (*connection_status)(const void*) = need("PQstatus");
  char* (*error)(const void*) = need("PQerrorMessage");
  void (*close)(void*) = need("PQfinish");
  int (*send)(void*, const char*, int, const unsigned*, const char* const*, const int*, const int*,
              int) = need("PQsendQueryParams");
  int (*send_prepared)(void*, const char*, int, const char* const*, const int*, const int*,
                       int) = need("PQsendQueryPrepared");
  void* (*prepare)(void*, const char*, const char*, int, const unsigned*) = need("PQprepare");
  void* (*execute)(void*, const char*) = need("PQexec");
  int (*one_by_one)(void*) = need("PQsetSingleRowMode");
  void* (*result)(void*) = need("PQgetResult");
  int (*status)(const void*) = need("PQresultStatus");
  char* (*result_error)(const void*) = need("PQresultErrorMessage");
  char* (*result_field)(const void*, int) = need("PQresultErrorField");
  void (*clear)(void*) = need("PQclear");
  int (*columns)(const void*) = need("PQnfields");
  int (*rows)(const void*) = need("PQntuples");
  char* (*value)(const void*, int, int) = need("PQgetvalue");
  int (*length)(const void*, int, int) = need("PQgetlength");
  int (*is_null)(const void*, int, int) = need("PQgetisnull");
  void* (*cancellation)(void*) = need("PQgetCancel");
  int (*cancel)(void*, char*, int) = need("PQcancel");
  void (*free_cancellation)(void*) = need("PQfreeCancel");
  ConnectionOption* (*parse)(const char*, char**) = need("PQconninfoParse");
  void (*free_options)(ConnectionOption*) = need("PQconninfoFree");
  void* (*on_notice)(void*, void (*)(void*, const char*), void*) = need("PQsetNoticeProcessor");
};

// The first line of a message of libpq, without its level.
std::string first_line(const char* text);
// Throws what an error of the server means to the user. `state`: SQLSTATE, empty where there is none; `patience_s`: how
// long statements may take.
[[noreturn]] void throw_server_error(const std::string& name, std::string_view state, const std::string& reason,
                                     bool is_connected, int patience_s);

// Opened once; null where it cannot be used, with the reason.
const LibPq* libpq(std::string* reason = nullptr);

}  // namespace weir::history
