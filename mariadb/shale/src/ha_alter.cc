// ALTER TABLE in place.

#include "ha_shale.h"

#include "engine.h"
#include "errors.h"

enum_alter_inplace_result ha_shale::check_if_supported_inplace_alter(TABLE *altered,
                                                                     Alter_inplace_info *info) {
  return handler::check_if_supported_inplace_alter(altered, info);
}

bool ha_shale::prepare_inplace_alter_table(TABLE *, Alter_inplace_info *) { return false; }
bool ha_shale::inplace_alter_table(TABLE *, Alter_inplace_info *) { return false; }
bool ha_shale::commit_inplace_alter_table(TABLE *, Alter_inplace_info *, bool) { return false; }

bool ha_shale::check_if_incompatible_data(HA_CREATE_INFO *, uint) {
  return COMPATIBLE_DATA_NO;
}
