# frozen_string_literal: true

# Loaded before ActiveRecord's tests (`ruby -r`): statements name no engine, and how each
# test ends is written as XML of the form that pytest gives, to the file REPORT.

require "cgi"
require "mysql2"
require "minitest"

# What the server is told instead of what the tests say.
module Statements
  # Old migrations name InnoDB: their tables are to be of the server's default engine.
  ENGINE = /\s+ENGINE=InnoDB\b/i
  # The tests' schema has one such index: without it no test would begin.
  FULLTEXT = /(\ACREATE TABLE.*, )FULLTEXT (?=INDEX)/i

  def self.told(statement)
    # Bytes that are no characters are asked for as they are.
    return statement unless statement.valid_encoding?
    return statement unless /\A\s*(CREATE|ALTER)\s/i.match?(statement)
    statement.gsub(ENGINE, "").sub(FULLTEXT, '\1')
  end

  def query(statement, *rest)
    super(Statements.told(statement), *rest)
  end

  def prepare(statement)
    super(Statements.told(statement))
  end
end
Mysql2::Client.prepend(Statements)

# Writes how each test ends.
class Report < Minitest::AbstractReporter
  def start
    @file = File.open(ENV.fetch("REPORT"), "w")
    # Tests that fork would write again what is not written yet.
    @file.sync = true
    @file.puts("<testsuite>")
  end

  def record(result)
    how, why = end_of(result)
    @file.puts(%(<testcase classname="#{escaped(result.klass)}" name="#{escaped(result.name)}">))
    @file.puts("<#{how}>#{escaped(why)}</#{how}>") unless how == "passed"
    @file.puts("</testcase>")
  end

  def report
    @file.puts("</testsuite>")
    @file.close
  end

  private

  def end_of(result)
    failure = result.failure
    return ["passed", ""] if failure.nil?
    how = { Minitest::Skip => "skipped", Minitest::UnexpectedError => "error" }.fetch(failure.class, "failure")
    [how, "#{failure.message}\n#{failure.location}"]
  end

  # XML has no control characters, not even written as numbers.
  def escaped(text)
    CGI.escapeHTML(text.dup.force_encoding("UTF-8").scrub("?").gsub(/[\x00-\x08\x0b-\x1f]/, "?"))
  end
end

module Minitest
  def self.plugin_report_init(_options)
    reporter << Report.new
  end
  extensions << "report"
end
