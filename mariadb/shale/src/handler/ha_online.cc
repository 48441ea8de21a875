// Writing what is being built of a table, in the same call as a row: the entries that come with it
// and those that go with it, or only that the row has changed. Nobody reads that yet, so nothing
// else is to be known of it: not whether it is there, nor what a snapshot shows.

#include "handler/ha_shale.h"

#include "codec/geometry.h"
#include "ddl/online.h"
#include "engine/errors.h"
#include "load/index_filler.h"
#include "txn/trx.h"

using namespace shale_sql;

// From now on all who write to the table write to the new trees too, or tell which rows they
// change. The server has taken care that nobody is writing.
void ha_shale::publish_building(TABLE *altered, Alter_inplace_info *info,
                                const std::vector<NewIndex> &indexes,
                                std::shared_ptr<ChangedRows> rows) {
  std::vector<BuildingIndex> published;
  for (const NewIndex &index : indexes) {
    if (index.build == nullptr) continue;
    const bool is_spatial = (altered->key_info[index.number].flags & HA_SPATIAL) != 0;
    published.push_back(
        {parts_over(table, altered, info, index.number), index.build, is_spatial});
  }
  if (!published.empty() || rows != nullptr) {
    shared_->building.publish(std::move(published), std::move(rows));
  }
}

// Learns of what is being built, once in a statement. Its trees stay to the end of the transaction,
// also if the ALTER TABLE is given up meanwhile.
void ha_shale::learn_building() {
  Online &online = online_;
  online.indexes = shared_->building.indexes();
  if (online.indexes == nullptr) return;
  trx()->hold(online.indexes);
  if (online.of_codecs == online.indexes->number) return;
  online.codecs.clear();
  for (const BuildingIndex &index : online.indexes->indexes) {
    std::vector<KEY_PART_INFO> parts = index.parts;
    KEY key;
    memset(static_cast<void *>(&key), 0, sizeof(key));
    key.key_part = parts.data();
    key.flags = index.is_spatial ? HA_SPATIAL : 0;
    key.user_defined_key_parts = key.ext_key_parts = static_cast<uint>(parts.size());
    online.codecs.push_back(std::make_unique<KeyCodec>(table, &key, primary().codec.get()));
  }
  online.of_codecs = online.indexes->number;
}

// Adds what a change of a row means for them; nullptr: the row comes, or goes. A row that is told
// as changed needs no lock of its own: the row's is enough.
void ha_shale::add_building(const uchar *old_row, std::string_view old_primary,
                            const uchar *new_row, std::string_view new_primary,
                            std::vector<Online::Change> *changes) {
  Online &online = online_;
  if (online.indexes == nullptr || online.indexes->number != shared_->building.number()) {
    learn_building();
    if (online.indexes == nullptr) return;
  }
  if (const ChangedRows *rows = online.indexes->rows.get()) {
    const size_t place = indexes_.size();
    if (old_row != nullptr) {
      row_write_.add(place, rows->tree(), SHALE_ACTION_PUT_UNLOCKED, old_primary);
    }
    if (new_row != nullptr && (old_row == nullptr || new_primary != old_primary)) {
      row_write_.add(place, rows->tree(), SHALE_ACTION_PUT_UNLOCKED, new_primary);
    }
  }
  changes->resize(online.codecs.size());
  for (size_t i = 0; i < online.codecs.size(); i++) {
    const shale_tree *tree = online.indexes->indexes[i].build->tree();
    const KeyCodec &codec = *online.codecs[i];
    Online::Entry &was = (*changes)[i].was, &is = (*changes)[i].is;
    if (old_row != nullptr) was.pack(codec, old_row, old_primary);
    if (new_row != nullptr) {
      const Geometries *geometries = codec.geometries();
      if (geometries != nullptr && !geometries->has_geometry(new_row)) {
        online.indexes->indexes[i].build->note_lacks_geometry();
      }
      is.pack(codec, new_row, new_primary);
    }
    const bool same_key = old_row != nullptr && new_row != nullptr && was.key == is.key;
    const size_t place = indexes_.size() + i;
    if (old_row != nullptr && !same_key) {
      row_write_.add(place, tree, SHALE_ACTION_DELETE, was.key);
    }
    if (new_row != nullptr && !(same_key && was.value == is.value)) {
      row_write_.add(place, tree, SHALE_ACTION_PUT, is.key, is.value);
    }
  }
}
