// What the optimizer and SHOW TABLE STATUS are told; ANALYZE and CHECK TABLE.

#include "ha_shale.h"

#include "engine.h"
#include "errors.h"
#include "trx.h"

using namespace shale_sql;

namespace {

uint64_t bytes_of(shale_tree *tree) {
  uint64_t size = 0;
  ErrorHandle error(shale_tree_approximate_bytes(tree, nullptr, 0, nullptr, 0, &size));
  return error ? 0 : size;
}

}  // namespace

int ha_shale::info(uint what) {
  if ((what & HA_STATUS_VARIABLE) != 0) {
    stats.data_file_length = bytes_of(primary().tree);
    stats.index_file_length = 0;
    for (size_t place = 1; place < indexes_.size(); place++) {
      stats.index_file_length += bytes_of(indexes_[place].tree);
    }
    uint64_t rows = 0;
    if (int error = number_of(rows_by_bytes(primary().tree, nullptr, 0, nullptr, 0, &rows))) {
      return error;
    }
    stats.records = rows;
    stats.deleted = 0;
    // A table that seems empty and is not would be taken for a constant.
    if (stats.records < 2 && (what & HA_STATUS_TIME) == 0) stats.records = 2;
    stats.mean_rec_length = rows == 0 ? 0 : static_cast<ulong>(stats.data_file_length / rows);
    stats.block_size = 16384;
  }
  if ((what & HA_STATUS_CONST) != 0) {
    stats.max_data_file_length = ULONGLONG_MAX;
    std::vector<IndexStatistics> known = shared_->statistics();
    for (uint number = 0; number < table->s->keys; number++) {
      KEY &key = table->key_info[number];
      const IndexStatistics *found = nullptr;
      for (const IndexStatistics &index : known) {
        if (index.name == key.name.str) found = &index;
      }
      double rows = static_cast<double>(std::max<ha_rows>(stats.records, 1));
      for (uint part = 0; part < key.ext_key_parts; part++) {
        double each;
        bool whole = part + 1 >= key.user_defined_key_parts;
        if (whole && (key.flags & HA_NOSAME) != 0) {
          each = 1;
        } else if (found != nullptr && part < found->rows_per_key.size()) {
          each = found->rows_per_key[part];
        } else {
          // Never analyzed: each part tells apart as many as the next.
          each = std::pow(rows, 1.0 - (part + 1.0) / (key.user_defined_key_parts + 1.0));
        }
        key.rec_per_key[part] = static_cast<ulong>(std::max(each, 1.0));
      }
    }
  }
  if ((what & HA_STATUS_AUTO) != 0 && table->found_next_number_field != nullptr) {
    if (int error = look_up_number()) return error;
    stats.auto_increment_value = shared_->next_number.load();
  }
  if ((what & HA_STATUS_ERRKEY) != 0) errkey = lookup_errkey;
  return 0;
}

ha_rows ha_shale::records_in_range(uint number, const key_range *low, const key_range *high,
                                   page_range *) {
  const Index &index = of_number(number);
  std::string from, to;
  if (low != nullptr) {
    index.codec->pack_tuple(low->key, low->keypart_map, &from);
    if (low->flag == HA_READ_AFTER_KEY && !next_after_prefix(&from)) return 0;
  }
  bool bounded = high != nullptr;
  if (bounded) {
    index.codec->pack_tuple(high->key, high->keypart_map, &to);
    if (high->flag != HA_READ_BEFORE_KEY) bounded = next_after_prefix(&to);
  }
  if (bounded && from >= to) return 0;
  uint64_t rows = 0;
  ErrorHandle error(rows_by_bytes(index.tree, from.data(), from.size(),
                                  bounded ? to.data() : nullptr, to.size(), &rows));
  if (error) return HA_POS_ERROR;
  // The optimizer takes 0 for certain; what others are about to commit may be there.
  return std::max<ha_rows>(rows, 1);
}

double ha_shale::scan_time() {
  return static_cast<double>(stats.data_file_length) / IO_SIZE + 2;
}

double ha_shale::read_time(uint index, uint ranges, ha_rows rows) {
  if (index != table->s->primary_key) return handler::read_time(index, ranges, rows);
  // Rows of the primary key lie together.
  double all = static_cast<double>(std::max<ha_rows>(stats.records, rows));
  return ranges + (all == 0 ? 0 : rows / all * scan_time());
}

int ha_shale::analyze(THD *, HA_CHECK_OPT *) { return HA_ADMIN_OK; }

int ha_shale::optimize(THD *, HA_CHECK_OPT *) {
  for (const Index &index : indexes_) {
    if (int error = number_of(shale_tree_compact(index.tree, nullptr, 0, nullptr, 0))) {
      return error;
    }
  }
  return HA_ADMIN_OK;
}

int ha_shale::check(THD *, HA_CHECK_OPT *) { return HA_ADMIN_NOT_IMPLEMENTED; }
