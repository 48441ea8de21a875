"""Redmine on Rails: projects, issues and what refers to them; projects removed with all they have."""

from __future__ import annotations

import os
import pathlib
import subprocess
from urllib.parse import urlencode

from browse import Browser
from webapp import Site, Web

NAME = "redmine"
PACKAGES = (
    "redmine",
    "libjs-chart.js",
    "libjs-jquery",
    "libjs-jquery-ui",
    "libjs-raphael",
    "ruby-jquery-rails",
)
FOLDERS = ("usr/share/redmine",)
REMOVED = ("Gemfile.lock",)
PASSWORD = "Frösche-im-Teich-7"

USERS = ("frosch", "kroete", "unke")
GROUPS = ("8", "9", "10")
# Names, and the number of each one's parent.
PROJECTS = (("teich", ""), ("sumpf", "1"), ("moor", "2"), ("see", ""))

IGNORED = [
    ("users", "hashed_password|salt"),
    # A day, and the name of a file with a time.
    ("attachments", "disk_filename|disk_directory"),
    ("tokens", "value"),
    # A second save within a second, by which only the time would change, is none.
    ("issues", "lock_version"),
]
IGNORED_ROWS = [("tokens", "action", "session")]
PAGES = (
    "projects",
    "admin/projects?status=",
    "projects/teich",
    "projects/sumpf",
    "projects/teich/issues?set_filter=1&sort=id",
    "issues?set_filter=1&sort=priority:desc,id&group_by=tracker&c[]=subject&c[]=parent&c[]=cf_1"
    "&c[]=relations&c[]=spent_hours&t[]=estimated_hours",
    "issues?set_filter=1&f[]=cf_1&op[cf_1]=~&v[cf_1][]=蛙&sort=cf_1,id",
    "issues?set_filter=1&f[]=relates&op[relates]=*&sort=id",
    "issues?set_filter=1&f[]=parent_id&op[parent_id]=~&v[parent_id][]=1&sort=id:desc",
    "issues/1",
    "issues/7",
    "issues/12",
    "issues/21",
    "projects/teich/issues/report",
    "projects/teich/roadmap?with_subprojects=1&completed=1",
    "issues/calendar?year=2026&month=1",
    "projects/teich/activity?from=",
    "time_entries?set_filter=1&sort=id",
    "time_entries/report?criteria[]=project&criteria[]=user&columns=year",
    "projects/teich/wiki",
    "projects/teich/wiki/index",
    "projects/teich/wiki/Wiki/history",
    "projects/teich/wiki/Wiki/diff?version=3&version_from=1",
    "projects/teich/wiki/Wiki/3/annotate",
    "projects/sumpf/wiki/Frösche",
    "projects/teich/boards",
    "projects/sumpf/boards/2",
    "projects/teich/news",
    "projects/teich/documents",
    "projects/teich/settings/members",
    "search?q=Frosch&scope=all",
    "search?q=quak+ß&scope=all&all_words=1",
    "search?q=蛙&scope=all&titles_only=1",
    "users?status=",
    "users/5",
    "groups",
    "custom_fields",
    "workflows",
)
EXPORTS = (
    "issues.csv?set_filter=1&c[]=all_inline&sort=id",
    "time_entries.csv?set_filter=1&sort=id",
    "projects/teich/wiki/Wiki.txt",
)
SETTINGS = {"RAILS_ENV": "production", "RACK_ENV": "production", "TZ": "UTC", "RUBYOPT": "-W0"}

DATABASE = """production:
  adapter: mysql2
  host: 127.0.0.1
  port: {port}
  database: {database}
  username: {user}
  password: {password}
  encoding: utf8mb4
"""
# Migrations of Rails 5.1 and older name InnoDB.
ENVIRONMENT = """
config.secret_key_base = "0" * 64
config.public_file_server.enabled = true
config.log_level = :warn
config.paths["log"] = "{work}/rails.log"
require "mysql2"
module NamedEngine
  def query(statement, *rest)
    named = /\\A\\s*CREATE\\s/i.match?(statement)
    super(named ? statement.sub(/ ENGINE=InnoDB\\b/, " ENGINE={engine}") : statement, *rest)
  end
end
Mysql2::Client.prepend(NamedEngine)
"""
# Pages say how long ago a thing was.
AGO = """Rails.application.config.to_prepare do
  ActionView::Helpers::DateHelper.module_eval do
    def distance_of_time_in_words(*) = "AGO"
  end
end
"""


def prepare(site: Site) -> None:
    # Debian's way to several sites: each has its folder.
    instance = site.folder / "instances/default"
    for folder in ("config", "tmp", "log", "files", "public/plugin_assets"):
        (instance / folder).mkdir(parents=True)
    (instance / "config/database.yml").write_text(
        DATABASE.format(
            port=site.database_port, database=site.database, user=site.user, password=site.password
        )
    )
    (site.folder / "config/additional_environment.rb").write_text(
        ENVIRONMENT.format(work=site.work, engine=site.engine)
    )
    # Debian's Gemfile looks for settings below /usr/share.
    gems = site.folder / "Gemfile"
    gems.write_text(gems.read_text().replace("/usr/share/redmine", str(site.folder)))
    (site.folder / "Gemfile.local").write_text('gem "puma"\n')
    (site.folder / "config/initializers/99-ago.rb").write_text(AGO)
    rake(site, "db:migrate")
    rake(site, "redmine:load_default_data", REDMINE_LANG="en")


def rake(site: Site, *tasks: str, **environment: str) -> None:
    with open(site.work / "rake.log", "ab") as log:
        subprocess.run(
            ["rake", *tasks],
            cwd=site.folder,
            check=True,
            stdout=log,
            stderr=log,
            env=os.environ | SETTINGS | environment,
        )


def serve(site: Site) -> Web:
    return Web(
        site,
        ["puma", "--bind", f"tcp://127.0.0.1:{site.port}", "--threads", "4:4", "config.ru"],
        **SETTINGS,
    )


def log_in(browser: Browser, user: str, password: str) -> None:
    browser.driver.delete_all_cookies()
    browser.go("login")
    browser.fill(username=user, password=password)
    browser.press("#login-submit")


def send(browser: Browser, path: str, method: str = "post", **values: str | list[str]) -> str:
    """Sends what a page's form would, and gives what the answer's page says."""
    return str(
        browser.script(
            "const [path, method, given] = values;"
            "const body = new URLSearchParams({_method: method,"
            " authenticity_token: document.querySelector('meta[name=csrf-token]').content});"
            "for (const [name, value] of Object.entries(given))"
            " for (const one of [value].flat()) body.append(name, one);"
            "const answer = await fetch('/' + path, {method: 'POST', body});"
            "const text = await answer.text();"
            "if (!answer.ok) return `${answer.status} ${text.slice(0, 300)}`;"
            "const page = new DOMParser().parseFromString(text, 'text/html');"
            "const found = page.querySelector('#errorExplanation, #flash_error, #flash_notice');"
            "return found ? found.textContent.trim() : `${answer.status}`",
            path,
            method,
            values,
        )
    )


def tell(browser: Browser, step: str, path: str, method: str = "post", **values: str | list[str]) -> None:
    browser.said.append((step, send(browser, path, method, **values)))


def submit(browser: Browser, path: str, button: str = "commit", **fields: str | bool) -> None:
    """Fills a page's form, whose fields are named `form[field]`."""
    browser.go(path)
    browser.fill(**fields)
    browser.press(f'#content input[name="{button}"]')
    wrong = browser.all("#errorExplanation")
    if wrong:
        raise SystemExit(f"{path}: {wrong[0].text}")


def of(form: str, **fields: str | bool) -> dict[str, str | bool]:
    return {f"{form}[{name}]": value for name, value in fields.items()}


def install(site: Site, browser: Browser) -> None:
    log_in(browser, "admin", "admin")
    browser.fill(
        password="admin", new_password=PASSWORD, new_password_confirmation=PASSWORD
    )
    browser.press('#content input[name="commit"]')
    browser.go("admin/info")
    browser.keep("log in", "#top-menu", "admin")
    for tab, given in (
        ("general", {"app_title": "Teich 蛙", "welcome_text": "Willkommen, *Frösche* 🐸"}),
        ("issues", {"cross_project_issue_relations": "1", "cross_project_subtasks": "system"}),
    ):
        named = {f"settings[{name}]": value for name, value in given.items()}
        tell(browser, f"settings {tab}", f"settings/edit?tab={tab}", **named)


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    people(browser)
    projects(browser)
    issues(browser, image)
    relations(browser)
    wiki(browser)
    talk(browser)
    looks(browser, "made")
    change(browser)
    looks(browser, "changed")
    remove(browser)
    looks(browser, "at the end")


def people(browser: Browser) -> None:
    for number, name in enumerate(USERS):
        submit(
            browser,
            "users/new",
            **of(
                "user",
                login=name,
                firstname="Frosch 🐸",
                lastname=f"Ünkenruf 蛙 {number}",
                mail=f"{name}@example.org",
                password=PASSWORD,
                password_confirmation=PASSWORD,
            ),
        )
    for name in ("Lurche ß", "東京", "Weg damit"):
        submit(browser, "groups/new", **of("group", name=name))
    for group in GROUPS:
        tell(browser, "into a group", f"groups/{group}/users", **{"user_ids[]": ["5", "6"]})
    for kind, values in (
        ("string", {"default_value": "蛙", "is_filter": "1", "searchable": "1"}),
        ("list", {"possible_values": "Teich\nMoor ß\n🐸", "is_filter": "1", "multiple": "1"}),
        ("int", {"min_length": "1"}),
        ("date", {}),
    ):
        named = {f"custom_field[{name}]": value for name, value in values.items()}
        tell(
            browser,
            "a field of issues",
            "custom_fields?type=IssueCustomField",
            **named,
            **{
                "custom_field[field_format]": kind,
                "custom_field[name]": f"Feld {kind} ß",
                "custom_field[is_for_all]": "1",
                "custom_field[tracker_ids][]": ["1", "2", "3"],
            },
        )


def projects(browser: Browser) -> None:
    for name, parent in PROJECTS:
        submit(
            browser,
            f"projects/new?parent_id={parent}",
            **of("project", name=f"{name.title()} 蛙 🐸", description="h1. Grüße", identifier=name),
        )
        for who, role in (("5", "3"), ("7", "5"), (GROUPS[0], "4")):
            tell(
                browser,
                "a member",
                f"projects/{name}/memberships",
                **{"membership[user_ids][]": who, "membership[role_ids][]": role},
            )
        for number in range(3):
            submit(
                browser,
                f"projects/{name}/versions/new",
                **of("version", name=f"1.{number} ß", effective_date=f"2031-0{number + 1}-01"),
            )
            submit(
                browser,
                f"projects/{name}/issue_categories/new",
                **of("issue_category", name=f"Sorte {number} 🐸"),
            )


def issues(browser: Browser, image: pathlib.Path) -> None:
    """Each project has ten, of which some are parts of others."""
    number = 0
    for name, _ in PROJECTS:
        first = number + 1
        for _ in range(10):
            number += 1
            # What a choice would make the page's script fetch is asked for at once.
            asked = {
                "tracker_id": str(number % 3 + 1),
                "priority_id": str(number % 5 + 1),
                "assigned_to_id": "5" if number % 2 else "",
                "parent_issue_id": str(first + (number - first - 1) // 2) if number > first else "",
                "estimated_hours": str(number),
                "start_date": f"2026-01-{number % 28 + 1:02}",
                "due_date": f"2026-02-{number % 28 + 1:02}",
            }
            query = urlencode({f"issue[{field}]": value for field, value in asked.items() if value})
            browser.go(f"projects/{name}/issues/new?{query}")
            browser.fill(
                **of("issue", subject=f"Brief № {number} 🐸", description=f"*Frosch* {number}: ß 東京"),
                **{"issue[custom_field_values][1]": f"蛙 {number}"},
            )
            if number == first:
                browser.fill(**{"attachments[dummy][file]": str(image)})
                browser.until(
                    "(document.querySelector('.attachments_fields input.token') || {}).value"
                )
            browser.press('#issue-form input[name="commit"]')
            browser.keep(f"issue {number}", "#content", f"Brief № {number}")
        for one in range(first, number + 1, 3):
            tell(
                browser,
                "a note",
                f"issues/{one}",
                "patch",
                **{
                    "issue[notes]": f"Dazu, #{first}: quak 🐸",
                    "issue[status_id]": "2",
                    "issue[done_ratio]": "30",
                    "issue[custom_field_values][2][]": ["Moor ß", "🐸"],
                },
            )
            submit(
                browser,
                f"issues/{one}/time_entries/new",
                **of("time_entry", hours="2.5", comments="Gequakt ß", spent_on="2026-01-05"),
                **of("time_entry", activity_id="9"),
            )


def relations(browser: Browser) -> None:
    for kind, one, other, delay in (
        ("relates", 1, 12, ""),
        ("blocks", 2, 13, ""),
        ("precedes", 7, 8, "3"),
        ("precedes", 8, 9, "2"),
        # Refused: in a circle, and twice.
        ("precedes", 9, 7, ""),
        ("relates", 1, 12, ""),
        ("duplicates", 21, 22, ""),
        ("copied_to", 23, 33, ""),
    ):
        tell(
            browser,
            f"{one} {kind} {other}",
            f"issues/{one}/relations",
            **{
                "relation[relation_type]": kind,
                "relation[issue_to_id]": str(other),
                "relation[delay]": delay,
            },
        )
    for one in (1, 7, 12):
        for user in ("5", "6"):
            tell(
                browser,
                "a watcher",
                f"watchers?object_type=issue&object_id={one}",
                **{"watcher[user_ids][]": user},
            )


def wiki(browser: Browser) -> None:
    for name, _ in PROJECTS[:2]:
        for title, parent in (("Wiki", ""), ("Frosch", "Wiki"), ("Kröte_蛙", "Frosch")):
            for version in range(3):
                text = f"h1. {title} 🐸\n\nQuak {version}, [[Wiki]], ß\n\nh2. Teil\n\n東京"
                submit(
                    browser,
                    f"projects/{name}/wiki/{title}/edit?parent={parent}",
                    **of("content", text=text, comments=f"Fassung {version} ß"),
                )
        tell(
            browser,
            "renamed",
            f"projects/{name}/wiki/Frosch/rename",
            **{"wiki_page[title]": "Frösche", "wiki_page[redirect_existing_links]": "1"},
        )
        tell(browser, "protected", f"projects/{name}/wiki/Wiki/protect", protected="1")


def talk(browser: Browser) -> None:
    for number, (name, _) in enumerate(PROJECTS[:3], 1):
        submit(
            browser, f"projects/{name}/boards/new", **of("board", name="Ufer ß", description="🐸")
        )
        browser.go(f"projects/{name}/boards")
        submit(
            browser,
            f"boards/{number}/topics/new",
            **of("message", subject="Wer quakt? 蛙", content="Hier: *ich* 🐸"),
        )
        topic = browser.driver.current_url.rsplit("/", 1)[1].partition("?")[0]
        for reply in range(3):
            tell(
                browser,
                "a reply",
                f"boards/{number}/topics/{topic}/replies",
                **{"reply[subject]": "RE: Wer quakt?", "reply[content]": f"Auch ich, {reply} ß"},
            )
        submit(
            browser,
            f"projects/{name}/news/new",
            **of("news", title="Laich 🐸", summary="Viel", description="h1. Frühling 東京"),
        )
        tell(
            browser, "a comment", f"news/{number}/comments", **{"comment[comments]": "Endlich ß 蛙"}
        )
        submit(
            browser,
            f"projects/{name}/documents/new",
            **of("document", title="Bestimmung ß", description="Lurche 🐸", category_id="6"),
        )


def looks(browser: Browser, when: str) -> None:
    for path in PAGES:
        # What happened within one second has no order there.
        browser.read(f"{when} {path}", path, "#content", in_order="/activity" not in path)
    for path in EXPORTS:
        text = browser.script("return await (await fetch('/' + values[0])).text()", path)
        browser.said.append((f"{when} {path}", str(text)))
    log_in(browser, USERS[0], PASSWORD)
    for path in ("projects/teich", "issues/1", "issues?set_filter=1&sort=id"):
        browser.read(f"{when} {path} of a user", path, "#content")
    log_in(browser, "admin", PASSWORD)


def change(browser: Browser) -> None:
    tell(browser, "moved", "projects/see", "patch", **{"project[parent_id]": "1"})
    tell(browser, "renamed", "projects/sumpf", "patch", **{"project[name]": "Morast 🐸"})
    tell(
        browser,
        "edited together",
        "issues/bulk_update",
        **{"ids[]": ["2", "3", "4"], "issue[priority_id]": "4", "notes": "Zusammen ß"},
    )
    tell(
        browser,
        "copied together",
        "issues/bulk_update",
        **{
            "ids[]": ["5", "6"],
            "copy": "1",
            "copy_subtasks": "1",
            "copy_attachments": "1",
            "issue[project_id]": "2",
        },
    )
    tell(browser, "moved", "issues/7", "patch", **{"issue[project_id]": "2"})
    tell(browser, "another parent", "issues/14", "patch", **{"issue[parent_issue_id]": "16"})
    tell(browser, "its own part", "issues/11", "patch", **{"issue[parent_issue_id]": "14"})
    for status in ("3", "5"):
        tell(browser, "closed", "issues/21", "patch", **{"issue[status_id]": status})
    tell(browser, "a version", "versions/1", "patch", **{"version[status]": "closed"})
    tell(
        browser,
        "a query",
        "queries",
        **{
            "query[name]": "Meine ß",
            "query[visibility]": "2",
            "f[]": ["status_id", "cf_1"],
            "op[status_id]": "o",
            "op[cf_1]": "~",
            "v[cf_1][]": "蛙",
            "c[]": ["id", "subject", "cf_1", "cf_2"],
            "query[sort_criteria][0][]": ["id", "asc"],
        },
    )
    tell(browser, "a project copied", "projects/see/copy", **{
        "project[name]": "Weiher ß", "project[identifier]": "weiher",
        "only[]": ["members", "versions", "issue_categories", "issues", "wiki", "boards"],
    })
    tell(browser, "archived", "projects/moor/archive")
    tell(browser, "unarchived", "projects/moor/unarchive")
    tell(browser, "locked", "users/6", "put", **{"user[status]": "3"})


def remove(browser: Browser) -> None:
    """Rails removes what depends on a row, by statements of its own: the schema has no foreign keys."""
    for path, values in (
        ("issues/2", {"todo": "destroy"}),
        ("issues/13", {"todo": "reassign", "reassign_to_id": "11"}),
        ("relations/1", {}),
        ("attachments/1", {}),
        ("issue_categories/1", {"todo": "reassign", "reassign_to_id": "2"}),
        ("versions/2", {}),
        ("time_entries/1", {}),
        ("projects/teich/wiki/Frösche", {"todo": "destroy"}),
        ("boards/1/topics/2/destroy", {}),
        ("projects/teich/boards/1", {}),
        ("news/1/comments/1", {}),
        ("news/2", {}),
        ("documents/1", {}),
        ("custom_fields/2", {}),
        (f"groups/{GROUPS[2]}", {}),
        ("users/7", {"confirm": USERS[2]}),
        ("projects/sumpf", {"confirm": "sumpf"}),
        ("projects/weiher", {"confirm": "weiher"}),
    ):
        method = "post" if path.endswith("destroy") else "delete"
        tell(browser, f"removed {path}", path, method, **values)
