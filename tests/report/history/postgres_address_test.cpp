// Addresses of databases: what is one, that no password is printed, and that our declarations of libpq are its own.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/secrets.h"
#include "report/history/libpq.h"
#include "report/history/store.h"

#if __has_include(<postgresql/libpq-fe.h>)
#include <postgresql/libpq-fe.h>
#define WEIR_HAVE_LIBPQ_HEADER 1
#endif

namespace weir::history {
namespace {

TEST(PostgresAddress, is_distinguished_from_a_file) {
  for (const char* address : {"postgresql://h/d", "postgres://", "host=h dbname=d", "dbname=d", "service=fleet"})
    EXPECT_TRUE(is_postgres(address)) << address;
  for (const char* file : {"weir_history.db", "/tmp/postgresql://x", "a=b.db", "http://h/d", "", "./host=h"})
    EXPECT_FALSE(is_postgres(file)) << file;
}

TEST(PostgresAddress, is_printed_without_its_password) {
  EXPECT_EQ(without_password("postgresql://ann:s3cret@db.example.org:5432/fleet?sslmode=require"),
            "postgresql://ann@db.example.org:5432/fleet");
  EXPECT_EQ(without_password("postgresql://ann@db/fleet"), "postgresql://ann@db/fleet");
  EXPECT_EQ(without_password("postgres://db/fleet?user=ann&password=s3cret"), "postgres://db/fleet?user=ann");
  EXPECT_EQ(without_password("postgresql:///fleet?host=/run/postgresql"), "postgresql:///fleet?host=/run/postgresql");
  EXPECT_EQ(without_password("postgresql://"), "postgresql://");
  // Broken ones, where nobody can tell what is the password.
  for (const char* address :
       {"postgresql://ann:s3@cret@db/fleet", "postgresql://ann:s3/cret@db/fleet", "postgresql://:s3cret@db",
        "postgresql://ann:cret?@db/fleet", "postgresql://db/fleet?password=s3@cret", "postgresql://db?host=x@cret",
        "host=db password=s3cret dbname=fleet", "host=db password='s3 cret' dbname=fleet", "password=s3cret",
        "host=db password='s3cret", "postgresql://ann:cret@", "postgresql://ann:%63ret@db/x?sslpassword=cret"})
    EXPECT_EQ(without_password(address).find("cret"), std::string::npos) << without_password(address);
}

TEST(PostgresAddress, errors_and_command_lines_hide_the_password) {
  for (const std::string address :
       {"postgresql://ann:s3cret@127.0.0.1:1/fleet", "postgresql://127.0.0.1:1/fleet?password=s3cret",
        "host=127.0.0.1 port=1 password=s3cret", "host=127.0.0.1 port=1 password='s3cret"}) {
    try {
      Store store(address, DatabaseAccess::read);
      ADD_FAILURE() << "nobody listens at port 1";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find("s3cret"), std::string::npos) << error.what();
      EXPECT_EQ(error.hint.find("s3cret"), std::string::npos) << error.hint;
    }
    for (const std::string& word : recorded_command({"weir", "history", "add", "a.json", "--db", address}))
      EXPECT_EQ(word.find("s3cret"), std::string::npos) << word;
    for (const std::string& word : recorded_command({"weir", "history", "add", "a.json", "--db=" + address}))
      EXPECT_EQ(word.find("s3cret"), std::string::npos) << word;
  }
}

#if WEIR_HAVE_LIBPQ_HEADER
template <class Ours, class Theirs>
struct Alike : std::false_type {};
template <class... Ours, class OurResult, class... Theirs, class TheirResult>
  requires(sizeof...(Ours) == sizeof...(Theirs) && std::is_void_v<OurResult> == std::is_void_v<TheirResult> &&
           std::is_pointer_v<OurResult> == std::is_pointer_v<TheirResult>)
struct Alike<OurResult (*)(Ours...), TheirResult (*)(Theirs...)>
    : std::bool_constant<(is_same_argument<Ours, Theirs> && ...)> {};

#define WEIR_SAME(ours, theirs) static_assert(Alike<decltype(LibPq::ours), decltype(&theirs)>::value)
WEIR_SAME(connect, PQconnectdbParams);
WEIR_SAME(connection_status, PQstatus);
WEIR_SAME(error, PQerrorMessage);
WEIR_SAME(close, PQfinish);
WEIR_SAME(send, PQsendQueryParams);
WEIR_SAME(send_prepared, PQsendQueryPrepared);
WEIR_SAME(prepare, PQprepare);
WEIR_SAME(execute, PQexec);
WEIR_SAME(one_by_one, PQsetSingleRowMode);
WEIR_SAME(result, PQgetResult);
WEIR_SAME(status, PQresultStatus);
WEIR_SAME(result_error, PQresultErrorMessage);
WEIR_SAME(result_field, PQresultErrorField);
WEIR_SAME(clear, PQclear);
WEIR_SAME(columns, PQnfields);
WEIR_SAME(rows, PQntuples);
WEIR_SAME(value, PQgetvalue);
WEIR_SAME(length, PQgetlength);
WEIR_SAME(is_null, PQgetisnull);
WEIR_SAME(cancellation, PQgetCancel);
WEIR_SAME(cancel, PQcancel);
WEIR_SAME(free_cancellation, PQfreeCancel);
WEIR_SAME(parse, PQconninfoParse);
WEIR_SAME(free_options, PQconninfoFree);
WEIR_SAME(on_notice, PQsetNoticeProcessor);
#undef WEIR_SAME
static_assert(kConnectionOk == CONNECTION_OK && kTuplesOk == PGRES_TUPLES_OK && kCommandOk == PGRES_COMMAND_OK &&
              kSingleTuple == PGRES_SINGLE_TUPLE && kFieldOfState == PG_DIAG_SQLSTATE &&
              kFieldOfMessage == PG_DIAG_MESSAGE_PRIMARY);
static_assert(sizeof(ConnectionOption) == sizeof(PQconninfoOption) &&
              offsetof(ConnectionOption, value) == offsetof(PQconninfoOption, val));
#endif

}  // namespace
}  // namespace weir::history
