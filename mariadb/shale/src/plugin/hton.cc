// Commit, rollback, savepoints and the like, each a call of the connection's transaction.

#include "plugin/hton.h"

#include "server.h"

#include "engine/engine.h"
#include "engine/errors.h"
#include "tables/in_words.h"
#include "txn/in_doubt.h"
#include "txn/prepared.h"
#include "txn/trx.h"

namespace shale_sql {

namespace {

int report(THD *thd, Error error) {
  const int number = error.number();
  if (error.has_text()) Trx::of(thd)->note_error(std::move(error));
  return tell_server(thd, number);
}

// Commit and rollback come without a handler, so their words are given here.
int refuse(THD *thd, const Error &error) {
  if (error && thd != nullptr) {
    uint number = error == HA_ERR_RECORD_FILE_FULL ? ER_RECORD_FILE_FULL : ER_GET_ERRMSG;
    my_printf_error(number, "SHALE: %s", MYF(0), text_for_clients(error).c_str());
  }
  return error.number();
}

bool is_whole(THD *thd, bool all) { return all || !in_transaction(thd); }

int commit(handlerton *, THD *thd, bool all) {
  Trx *trx = Trx::find(thd);
  if (trx == nullptr) return 0;
  if (is_whole(thd, all)) return refuse(thd, trx->commit());
  return report(thd, trx->commit_statement());
}

int rollback(handlerton *, THD *thd, bool all) {
  Trx *trx = Trx::find(thd);
  if (trx == nullptr) return 0;
  if (is_whole(thd, all)) return refuse(thd, trx->rollback());
  return report(thd, trx->rollback_statement());
}

int prepare(handlerton *hton, THD *thd, bool all) {
  Trx *trx = Trx::find(thd);
  if (trx == nullptr) return 0;
  if (!is_whole(thd, all)) return report(thd, trx->commit_statement());
  // One that has written no table that outlives the server is not found again after a crash, as of
  // InnoDB. The server asks for it of XA PREPARE only, and rolls it back when its connection ends.
  // What other engines have written may have values of a sequence.
  if (!thd->ha_data[hton->slot].ha_info[all ? 1 : 0].is_trx_read_write()) {
    if (thd->lex->sql_command != SQLCOM_XA_PREPARE) return refuse(thd, trx->sync_sequences());
    return refuse(thd, trx->prepare_reads(bytes_of_xid(*thd->get_xid())));
  }
  if (refuse(thd, trx->prepare(bytes_of_xid(*thd->get_xid()))) != 0) return 1;
  // As InnoDB (MDEV-26682, MDEV-34466): who decides it may wait for those who would wait for these.
  const bool is_long = thd->lex->sql_command == SQLCOM_XA_PREPARE &&
                       thd_tx_isolation(thd) != ISO_SERIALIZABLE;
  return is_long ? refuse(thd, trx->release_reads()) : 0;
}

// The server asks this before it commits what has changed something, also where it does not ask to
// prepare: where the rows of sequences are all that the binary log gets, or where another engine
// has rows with values of them. Neither is durable before the sequences are. The answer is the
// number that a commit of versions has, which goes into the registry with that of its begin, or 0,
// or that it failed.
ulonglong prepare_commit(THD *thd, ulonglong *begin) {
  Trx *trx = Trx::find(thd);
  if (trx == nullptr) return 0;
  ulonglong end = 0;
  if (refuse(thd, trx->end_version(begin, &end)) != 0) return ULONGLONG_MAX;
  const int whole = in_transaction(thd) ? 1 : 0;
  // With rows of other tables here a prepare, or a commit alone, syncs them together.
  if (thd->ha_data[engine().hton->slot].ha_info[whole].is_trx_read_write()) return end;
  return refuse(thd, trx->sync_sequences()) == 0 ? end : ULONGLONG_MAX;
}

void commit_ordered(handlerton *, THD *thd, bool all) {
  Trx *trx = Trx::find(thd);
  if (trx != nullptr && is_whole(thd, all)) trx->commit_ordered();
}

int close_connection(handlerton *, THD *thd) {
  if (Trx *trx = Trx::find(thd)) {
    trx->detach();
    // Nobody is left to be told; what could not be rolled back is tried again, or was logged.
    (void)trx->rollback();
  }
  Trx::forget(thd);
  return 0;
}

// With the connection's data locked, so that its transaction does not go meanwhile.
void kill_query(handlerton *, THD *thd, enum thd_kill_levels) {
  if (Trx *trx = Trx::find(thd)) trx->interrupt();
}

int savepoint_set(handlerton *, THD *thd, void *place) {
  return report(thd, Trx::of(thd)->savepoint(static_cast<size_t *>(place)));
}

int savepoint_rollback(handlerton *, THD *thd, void *place) {
  Trx *trx = Trx::find(thd);
  return trx == nullptr ? 0 : report(thd, trx->rollback_to(*static_cast<size_t *>(place)));
}

// The engine's savepoints are a stack. The server gives up one with all that follow it, as at the
// end of a function, or one whose name is used again: if others follow, that stays as long as they
// do.
int savepoint_release(handlerton *, THD *thd, void *place) {
  Trx *trx = Trx::find(thd);
  if (trx == nullptr) return 0;
  const bool later = thd_sql_command(thd) != SQLCOM_SAVEPOINT;
  return report(thd, trx->release(*static_cast<size_t *>(place), later));
}

// Some locks stay after going back: DDL has to wait for those who have them, as on InnoDB.
bool savepoint_rollback_can_release_mdl(handlerton *, THD *thd) {
  Trx *trx = Trx::find(thd);
  return trx == nullptr || !trx->may_have_locks();
}

int start_consistent_snapshot(handlerton *hton, THD *thd) {
  Trx *trx = Trx::of(thd);
  if (thd_tx_isolation(thd) != ISO_REPEATABLE_READ) {
    push_warning(thd, Sql_condition::WARN_LEVEL_WARN, HA_ERR_UNSUPPORTED,
                 "SHALE: WITH CONSISTENT SNAPSHOT has an effect at REPEATABLE READ only");
  }
  if (Error error = trx->take_snapshot()) return refuse(thd, error);
  trans_register_ha(thd, true, hton, 0);
  return 0;
}

bool flush_logs(handlerton *) {
  return bool(consume_error(shale_sync(engine().db)));
}

}  // namespace

void fill_transactions(handlerton *hton) {
  hton->savepoint_offset = sizeof(size_t);
  hton->close_connection = close_connection;
  hton->kill_query = kill_query;
  hton->savepoint_set = savepoint_set;
  hton->savepoint_rollback = savepoint_rollback;
  hton->savepoint_rollback_can_release_mdl = savepoint_rollback_can_release_mdl;
  hton->savepoint_release = savepoint_release;
  hton->commit = commit;
  hton->prepare_commit_versioned = prepare_commit;
  hton->commit_ordered = commit_ordered;
  hton->rollback = rollback;
  hton->prepare = prepare;
  hton->commit_checkpoint_request = [](void *cookie) {
    engine().in_doubt.notify_when_durable(cookie);
  };
  hton->start_consistent_snapshot = start_consistent_snapshot;
  hton->flush_logs = flush_logs;
  hton->pre_shutdown = [] { engine().in_doubt.before_shutdown(); };
}

}  // namespace shale_sql
