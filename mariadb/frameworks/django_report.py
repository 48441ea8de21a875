"""Settings of Django's tests, and a runner that writes how each ends as XML, as pytest does."""

from __future__ import annotations

import os
import unittest
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pymysql

# Django asks for mysqlclient, which has to be compiled. PyMySQL takes its place, and names a
# version of that.
pymysql.version_info = (2, 2, 1, "final", 0)
pymysql.install_as_MySQLdb()

from django.test.runner import DiscoverRunner  # noqa: E402

if ".gis." in os.environ["DJANGO_BACKEND"]:
    # Django makes SPATIAL indexes for engines whose names it knows.
    from django.contrib.gis.db.backends.mysql.introspection import MySQLIntrospection

    MySQLIntrospection.supports_spatial_index = lambda *_: True


def database(name: str) -> dict[str, Any]:
    return {
        "ENGINE": os.environ["DJANGO_BACKEND"],
        "HOST": "127.0.0.1",
        "PORT": os.environ["DJANGO_PORT"],
        "USER": "root",
        "NAME": name,
        "TEST": {"CHARSET": "utf8mb4", "COLLATION": "utf8mb4_general_ci"},
    }


DATABASES = {"default": database("django"), "other": database("django_other")}
SECRET_KEY = "of no worth"
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
USE_TZ = False
TEST_RUNNER = "django_report.Runner"


class Result(unittest.TextTestResult):
    """Writes each end at once: a suite that is ended has written what came before."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self.file = open(os.environ["DJANGO_REPORT"], "w", encoding="utf-8", errors="replace")
        self.file.write("<testsuite>\n")
        self.parts: dict[str, tuple[str, str]] = {}

    def _end(self, test: unittest.TestCase, how: str, why: str) -> None:
        """A test that fails in several of its parts has one end, the first."""
        self.parts.setdefault(test.id(), (how, why))

    def addFailure(self, test: Any, err: Any) -> None:
        super().addFailure(test, err)
        self._end(test, "failure", self._exc_info_to_string(err, test))

    def addError(self, test: Any, err: Any) -> None:
        super().addError(test, err)
        self._end(test, "error", self._exc_info_to_string(err, test))
        if not isinstance(test, unittest.TestCase):
            self.stopTest(test)

    def addSkip(self, test: Any, reason: str) -> None:
        super().addSkip(test, reason)
        self._end(test, "skipped", reason)

    def addExpectedFailure(self, test: Any, err: Any) -> None:
        super().addExpectedFailure(test, err)
        self._end(test, "skipped", "fails, as expected")

    def addUnexpectedSuccess(self, test: Any) -> None:
        super().addUnexpectedSuccess(test)
        self._end(test, "failure", "passes, which was not expected")

    def addSubTest(self, test: Any, subtest: Any, err: Any) -> None:
        super().addSubTest(test, subtest, err)
        if err is not None:
            kind = "failure" if issubclass(err[0], test.failureException) else "error"
            self._end(test, kind, self._exc_info_to_string(err, test))

    def stopTest(self, test: Any) -> None:
        super().stopTest(test)
        how, why = self.parts.pop(test.id(), ("passed", ""))
        group, _, name = test.id().rpartition(".")
        child = "" if how == "passed" else f"<{how}>{escape(printable(why))}</{how}>"
        self.file.write(
            f"<testcase classname={quoteattr(group)} name={quoteattr(name)}>{child}</testcase>\n"
        )
        self.file.flush()

    def stopTestRun(self) -> None:
        super().stopTestRun()
        self.file.write("</testsuite>\n")
        self.file.close()


def printable(text: str) -> str:
    """XML has no control characters, not even written as numbers."""
    return "".join(one if one.isprintable() or one in "\n\t" else "?" for one in text)


class Runner(DiscoverRunner):
    def get_resultclass(self) -> type[Result]:
        return Result
