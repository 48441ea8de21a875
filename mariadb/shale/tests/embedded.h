// The server within a test's process, so that there are tables of every type: without InnoDB, on a
// data folder of its own.
#pragma once

#include "server.h"
#include <mysql.h>
#include <sql_base.h>

#include "check.h"

#include <string>

class Embedded {
 public:
  Embedded(const std::string &data, const std::string &share) {
    const std::string options[] = {"test", "--no-defaults", "--datadir=" + data,
                                   "--lc-messages-dir=" + share + "/english",
                                   "--character-sets-dir=" + share + "/charsets",
                                   "--default-storage-engine=MyISAM", "--skip-innodb"};
    char *arguments[std::size(options)];
    for (size_t i = 0; i < std::size(options); i++) {
      arguments[i] = const_cast<char *>(options[i].c_str());
    }
    CHECK(mysql_server_init(std::size(options), arguments, nullptr) == 0);
    connection_ = mysql_init(nullptr);
    mysql_options(connection_, MYSQL_OPT_USE_EMBEDDED_CONNECTION, nullptr);
    CHECK(mysql_real_connect(connection_, nullptr, "root", nullptr, nullptr, 0, nullptr, 0));
    run("create database shapes");
    run("use shapes");
    run("set names utf8mb4, sql_mode = '', time_zone = '+00:00'");
  }

  void run(const std::string &statement) {
    if (mysql_real_query(connection_, statement.data(), statement.size()) == 0) return;
    fprintf(stderr, "%s: %s\n", statement.c_str(), mysql_error(connection_));
    exit(1);
  }

  // A table of the database, read from its first row on. One at a time.
  TABLE *open(const std::string &name) {
    THD *thd = session();
    const LEX_CSTRING database = {STRING_WITH_LEN("shapes")}, table = {name.data(), name.size()};
    list_.init_one_table(&database, &table, nullptr, TL_READ);
    lex_start(thd);
    TABLE *opened = open_ltable(thd, &list_, TL_READ, 0);
    CHECK(opened != nullptr);
    opened->use_all_columns();
    CHECK(opened->file->ha_rnd_init_with_error(true) == 0);
    return opened;
  }
  void close(TABLE *table) {
    table->file->ha_rnd_end();
    close_thread_tables(session());
    session()->mdl_context.release_transactional_locks(session());
  }

 private:
  THD *session() {
    THD *thd = static_cast<THD *>(connection_->thd);
    thd->store_globals();
    return thd;
  }

  MYSQL *connection_;
  TABLE_LIST list_;
};
