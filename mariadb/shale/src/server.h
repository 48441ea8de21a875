// The server's headers that the plugin needs, in the order that they need.
#pragma once

#include <my_global.h>
#include <mysql_version.h>
#include <sql_class.h>
#include <sql_parse.h>
#include <sql_show.h>
#include <sql_table.h>
#include <handler.h>
#include <table.h>
#include <table_cache.h>
#include <field.h>
#include <key.h>
#include <log.h>
#include <partition_info.h>
#include <spatial.h>
#include <sql_base.h>
#include <sql_plugin.h>
#include <set_var.h>
#include <mysql/plugin.h>
#include <mysql/plugin_ftparser.h>
#include <mysql/service_sql.h>
