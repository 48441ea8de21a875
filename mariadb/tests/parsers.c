/* Parsers of FULLTEXT indexes, for words.py. `handed_on` gives each text to the engine's own rules.
   `pairs` has the two letters of all places as words, as do parsers of languages without spaces. */
#include <mysql/plugin_ftparser.h>
#include <stddef.h>

static int nothing(MYSQL_FTPARSER_PARAM *param)
{
  (void) param;
  return 0;
}

static int hand_on(MYSQL_FTPARSER_PARAM *param)
{
  return param->mysql_parse(param, param->doc, param->length);
}

static int pairs(MYSQL_FTPARSER_PARAM *param)
{
  MYSQL_FTPARSER_BOOLEAN_INFO info= {FT_TOKEN_WORD, 1, 0, 0, 0, ' ', 0};
  int at;
  for (at= 0; at + 1 < param->length; at++)
  {
    const char *two= param->doc + at;
    if ((unsigned char) two[0] > ' ' && (unsigned char) two[0] < 128 &&
        (unsigned char) two[1] > ' ' && (unsigned char) two[1] < 128)
      param->mysql_add_word(param, two, 2, &info);
  }
  return 0;
}

static struct st_mysql_ftparser handed_on_parser=
  {MYSQL_FTPARSER_INTERFACE_VERSION, hand_on, nothing, nothing};
static struct st_mysql_ftparser pairs_parser=
  {MYSQL_FTPARSER_INTERFACE_VERSION, pairs, nothing, nothing};

#define PARSER(name, parser) \
  {MYSQL_FTPARSER_PLUGIN, parser, name, "Shale", "a parser for tests", PLUGIN_LICENSE_GPL, \
   NULL, NULL, 0x0100, NULL, NULL, "1.0", MariaDB_PLUGIN_MATURITY_EXPERIMENTAL}

maria_declare_plugin(parsers)
PARSER("handed_on", &handed_on_parser),
PARSER("pairs", &pairs_parser)
maria_declare_plugin_end;
