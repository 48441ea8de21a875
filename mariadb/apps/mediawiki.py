"""MediaWiki: installed by its forms, pages written, moved, deleted and restored, files, users, searches."""

from __future__ import annotations

import json
import pathlib
from urllib.parse import quote, urlencode

import webapp
from browse import Browser
from webapp import Site

NAME = "mediawiki"
PACKAGES = ("mediawiki", "mediawiki-classes")
FOLDERS = ("usr/share/mediawiki", "var/lib/mediawiki")
REMOVED = ("LocalSettings.php",)
PASSWORD = "Passwörter-sind-läng-1"
TITLE = "Grüße_aus_東京_🐸"
TEXT = """Ein Frosch sagt “quak”, ein Ёж schweigt. 蛙は跳ぶ。 Ð ø ß 🐸🐸

== Überschrift ==
* [[Zweite Seite]] und [[Ёжик]]
{| class="wikitable"
| eins || zwei
|}
[[Kategorie:Lurche]] [[Category:Lurche 🐸]]
"""

IGNORED = [
    ("user", "user_(password|token|touched|newpassword|email_token)"),
    ("bot_passwords", "bp_token"),
    ("page", "page_random"),
]
IGNORED_ROWS = [
    # Caches: which things are in them, and until when, depends on the clock.
    ("objectcache", "keyname", ""),
    # When a module's files have changed.
    ("module_deps", "md_module", ""),
    # The texts of the languages, with the moments at which their files have changed.
    ("l10n_cache", "lc_key", "^(deps|list|preload)$"),
]


def prepare(site: Site) -> None:
    """MediaWiki offers InnoDB alone, as the only engine that it knows."""
    file = site.folder / "includes/installer/MysqlInstaller.php"
    text = file.read_text()
    assert text.count("'InnoDB'") == 2
    file.write_text(text.replace("'InnoDB'", f"'{site.engine}'"))
    # The search's table, of MyISAM whatever else is chosen, for its FULLTEXT indexes.
    schema = site.folder / "maintenance/tables-generated.sql"
    text = schema.read_text()
    assert text.count("ENGINE = MyISAM") == 1
    schema.write_text(text.replace("ENGINE = MyISAM", f"ENGINE = {site.engine}"))


def install(site: Site, browser: Browser) -> None:
    browser.go("mw-config/index.php")
    browser.fill(uselang="en", ContLang="en")
    browser.press('[name="submit-continue"]')
    browser.keep("environment", "body", "You can install MediaWiki")
    browser.press('[name="submit-continue"]')
    browser.fill(
        mysql_wgDBserver=site.host, mysql_wgDBname=site.database, mysql__InstallUser=site.user,
        mysql__InstallPassword=site.password,
    )
    browser.press('[name="submit-continue"]')
    browser.keep("database", "body", "Database settings")
    browser.press('[name="submit-continue"]')
    browser.fill(
        config_wgSitename="Fröschli 蛙 🐸", config__AdminName="Frosch", config__AdminPassword=PASSWORD,
        config__AdminPasswordConfirm=PASSWORD, config__AdminEmail="frog@example.org",
    )
    browser.click('[name="config__SkipOptional"][value="continue"]')
    browser.press('[name="submit-continue"]')
    browser.fill(config_wgEnableUploads=True, config_wgEnableEmail=False)
    browser.press('[name="submit-continue"]')
    browser.press('[name="submit-continue"]')
    browser.find('[name="submit-continue"]:not([disabled])')
    browser.keep("tables made", "body", "done")
    browser.press('[name="submit-continue"]')
    browser.keep("installed", "body", "MediaWiki")
    settings = browser.script(
        "return await (await fetch(document.querySelector('a[href*=\"localsettings=\"]').href)).text()"
    )
    assert f"ENGINE={site.engine}, DEFAULT CHARSET=binary" in settings, settings
    # Tasks run when this program says so, not after some pages; mails nobody; errors into a file.
    (site.folder / "LocalSettings.php").write_text(
        f"{settings}\n$wgJobRunRate = 0;\n$wgShowExceptionDetails = true;\n"
        f"$wgDBerrorLog = '{site.work}/database-errors.log';\n$wgFragmentMode = ['html5'];\n"
        "$wgPasswordAttemptThrottle = false;\n$wgMaxUploadSize = 16777216;\n$wgUseImageMagick = false;\n"
        "$wgMaxShellMemory = 0;\n$wgStrictFileExtensions = false;\n"
    )


def page(title: str, **query: str) -> str:
    more = f"&{urlencode(query)}" if query else ""
    return f"index.php?title={quote(title)}{more}"


def log_in(browser: Browser, name: str) -> None:
    browser.go(page("Special:UserLogin"))
    browser.fill(wpName=name, wpPassword=PASSWORD)
    browser.press("#wpLoginAttempt")
    browser.find("#pt-logout")


def log_out(browser: Browser) -> None:
    browser.go(page("Special:UserLogout"))
    browser.press("#mw-content-text button[type=submit]")


def write(browser: Browser, title: str, text: str, summary: str, section: str | None = None) -> None:
    browser.go(page(title, action="edit", **({"section": section} if section else {})))
    browser.fill(wpTextbox1=text, wpSummary=summary)
    browser.press("#wpSave")
    if browser.all("#wpSave"):
        raise SystemExit(f"{title} was not saved:\n{browser.text()}")


def jobs(site: Site) -> None:
    site.php("maintenance/runJobs.php")


def submit(browser: Browser, title: str, step: str, *words: str, **fields: str | bool) -> None:
    """Fills the one form of a special page, or of an action, and sends it."""
    browser.go(title)
    browser.fill(**fields)
    browser.press("#mw-content-text form button[type=submit], #mw-content-text form input[type=submit]")
    browser.keep(step, "#content", *words)


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    log_in(browser, "Frosch")
    browser.go(page("Main Page"))
    browser.keep("main page", "#content", "MediaWiki has been installed")
    write(browser, TITLE, TEXT, "Angelegt: 蛙")
    browser.keep("a page", "#content", "Überschrift", "eins")
    for turn in range(3):
        write(browser, TITLE, f"{TEXT}\nFassung {turn} {'ö' * 2000}", f"Fassung {turn} 🐸")
    write(browser, TITLE, "== Überschrift ==\nNur der Abschnitt", "Abschnitt", section="1")
    write(browser, "Zweite Seite", f"{{{{:{TITLE}}}}} und [[{TITLE}]]", "bindet ein")
    browser.keep("a page in a page", "#content", "Nur der Abschnitt")
    write(browser, "Ёжик", "#REDIRECT [[Zweite Seite]]", "")
    write(browser, "Template:Kröte", "<noinclude>[[Category:Vorlagen]]</noinclude>'''{{{1}}}'''", "")
    write(browser, "Dritte", "{{Kröte|grün}} {{Kröte|blau}} [https://example.org/ä außen]", "")
    write(browser, f"Talk:{TITLE}", "Erste Meinung --~~~", "")
    browser.go(page(f"Talk:{TITLE}", action="edit", section="new"))
    browser.fill(wpSummary="Zweite Meinung 🐸", wpTextbox1="Doch! --~~~")
    browser.press("#wpSave")
    browser.keep("talk", "#content", "Doch!")
    jobs(site)

    history(site, browser)
    files(site, browser, image)
    users(site, browser)
    deletions(site, browser)
    looks(site, browser)


def history(site: Site, browser: Browser) -> None:
    browser.go(page(TITLE, action="history"))
    browser.keep("history", "#content", "Fassung 1 🐸", "Angelegt: 蛙")
    ids = [one.get_attribute("data-mw-revid") for one in browser.all("#pagehistory li")]
    browser.go(f"index.php?diff={ids[1]}&oldid={ids[3]}")
    browser.keep("difference", "#content", "Fassung 2")
    browser.go(page(TITLE, oldid=str(ids[-1])))
    browser.keep("an old version", "#content", "Überschrift")
    browser.go(page(TITLE, action="edit", undo=str(ids[0]), undoafter=str(ids[1])))
    browser.keep("undoing", "#content")
    browser.fill(wpSummary="doch nicht")
    browser.press("#wpSave")
    browser.keep("undone", "#content", "Fassung 2")
    browser.go(page(TITLE, action="rollback", **{"from": "Frosch"}))
    browser.keep("rollback refused", "#content")
    submit(
        browser, page(f"Special:MovePage/{TITLE}"), "moved", "has been moved", wpNewTitleMain="Grüße, verschoben 蛙",
        wpReason="besser so", wpLeaveRedirect=True,
    )
    jobs(site)
    browser.go(page(TITLE))
    browser.keep("redirected", "#content", "Redirected from")


def files(site: Site, browser: Browser, image: pathlib.Path) -> None:
    for version in (image, webapp.picture(image.with_name("zweites.png"), 900, 700)):
        browser.go(page("Special:Upload"))
        browser.fill(
            wpUploadFile=str(version), wpDestFile="Frosch 🐸.png", wpIgnoreWarning=True,
            wpUploadDescription="Ein Bild: 蛙",
        )
        browser.press('[name="wpUpload"]')
        browser.keep(f"file {version.name}", "#content", "Frosch")
    write(browser, "Bilder", "[[File:Frosch 🐸.png|thumb|300px|Ein Fröschchen]]", "mit Bild")
    browser.go(page("Bilder"))
    browser.keep("a page with a picture", "#content", "Ein Fröschchen")
    assert browser.pictures() > 0


def users(site: Site, browser: Browser) -> None:
    for name in ("Kröte", "Ёж", "Unke"):
        browser.go(page("Special:CreateAccount"))
        browser.fill(wpName=name, wpPassword=PASSWORD, retype=PASSWORD, reason="zum Probieren")
        browser.press("#wpCreateaccount")
        browser.keep(f"user {name}", "#content", "created")
    browser.go(page("Special:UserRights/Kröte"))
    browser.fill(**{"wpGroup-sysop": True})
    browser.fill(**{"user-reason": "kann das"})
    browser.press('[name="saveusergroups"]')
    browser.keep("rights", "#content", "Kröte")
    submit(
        browser, page("Special:Block/Unke"), "blocked", "has been blocked", wpExpiry="infinite",
        **{"wpReason-other": "quakt zu laut ß"},
    )
    submit(browser, page("Dritte", action="protect"), "protected", **{"mwProtect-level-edit": "sysop"})
    submit(browser, page("Dritte", action="watch"), "watched")
    browser.go(page("Special:Preferences"))
    # Scripts put others in the place of its lists, sooner or later.
    browser.read("preferences", page("Special:Preferences"), "#mw-prefsection-personal")
    browser.script(
        "await mw.loader.using('mediawiki.api');"
        "await new mw.Api().saveOptions({rclimit: 100, nickname: 'Frösch 🐸', gender: 'female'}); return 1"
    )
    log_out(browser)
    log_in(browser, "Ёж")
    write(browser, "Zweite Seite", "Ёж hat alles ersetzt", "ersetzt")
    browser.go(page("Dritte", action="edit"))
    browser.keep("protected from others", "#content", "protected")
    log_out(browser)
    write(browser, "Von niemand", "ohne Namen 蛙", "anonym")
    browser.go(page("Special:UserLogin"))
    browser.fill(wpName="Kröte", wpPassword="falsch")
    browser.press("#wpLoginAttempt")
    browser.keep("wrong password", "#content", "Incorrect")
    log_in(browser, "Kröte")
    # The button of the history: takes back all of the last writer's versions.
    browser.go(page("Zweite Seite", action="history"))
    browser.press(".mw-rollback-link a")
    if browser.all("#mw-content-text form button[type=submit]"):
        browser.press("#mw-content-text form button[type=submit]")
    browser.keep("rollback", "#content", "Reverted")
    jobs(site)
    log_out(browser)
    log_in(browser, "Frosch")


def deletions(site: Site, browser: Browser) -> None:
    for title in ("Dritte", "Von niemand", "File:Frosch 🐸.png"):
        submit(browser, page(title, action="delete"), f"deleted {title}", "has been deleted", wpReason="weg: ß")
    browser.go(page("Dritte"))
    browser.keep("no page", "#content", "deleted")
    jobs(site)
    for title in ("Dritte", "File:Frosch 🐸.png"):
        browser.go(page(f"Special:Undelete/{title}"))
        browser.keep(f"deleted versions of {title}", "#content")
        browser.fill(wpComment="doch wieder 蛙")
        browser.press('[name="restore"]')
        browser.keep(f"restored {title}", "#content", "undeleted")
    jobs(site)


# Words, among them some that no page has, and signs that mean something to a search.
WORDS = (
    "蛙", "Frosch", "quak", "ersetzt", "Überschrift", "nichts-davon", "ö", "Fassung -蛙", "Meinung*",
)
SPECIAL = (
    "RecentChanges", "Log", "AllPages", "Categories", "ListUsers", "ListFiles", "Watchlist",
    "WhatLinksHere/Zweite Seite", "Contributions/Frosch", "Statistics", "WantedPages", "LonelyPages",
    "DoubleRedirects", "UncategorizedPages", "LongPages", "ShortPages", "MostLinkedPages",
    "LinkSearch/https:__example.org", "PrefixIndex/Gr", "BlockList", "ProtectedPages", "NewPages",
    "DeletedContributions/Frosch", "UnusedTemplates", "MostRevisions", "Ancientpages", "Tags",
    "FileDuplicateSearch/Frosch 🐸.png", "ActiveUsers",
)
# Pages in order of a count, in which many are equal, and of a moment, in which two may be.
UNORDERED = ("MostRevisions", "MostLinkedPages", "Log", "RecentChanges", "Watchlist")
QUERIES = (
    "list=allpages&aplimit=100",
    "list=allrevisions&arvlimit=100&arvprop=ids|user|comment|size|sha1|content&arvslots=main",
    "list=logevents&lelimit=100&letype=delete",
    "list=search&srsearch=Frosch",
    "list=usercontribs&ucuser=Frosch&uclimit=100",
    "prop=links|categories|templates|images&titles=Dritte|Bilder|Zweite Seite&pllimit=100",
    "meta=siteinfo&siprop=statistics",
    "list=allusers",
    "list=querypage&qppage=Wantedpages",
    "list=prefixsearch&pssearch=grü",
    "list=backlinks&bltitle=Zweite Seite",
)


def looks(site: Site, browser: Browser) -> None:
    for words in WORDS:
        asked = page("Special:Search", search=words, fulltext="1", ns0="1", ns1="1", ns6="1")
        browser.read(f"search {words}", asked, "#content")
    for special in SPECIAL:
        path = page(f"Special:{special}", limit="100")
        browser.read(special, path, "#content", in_order=special not in UNORDERED)
    browser.go(page("Category:Lurche 🐸"))
    browser.keep("category", "#content", "verschoben")
    for query in QUERIES:
        answer = json.loads(browser.script(
            "const way = '/api.php?action=query&format=json&formatversion=2&';"
            "return await (await fetch(way + encodeURI(values[0]))).text()", query,
        ))
        assert "error" not in answer, (query, answer)
        browser.said.append((f"api {query}", json.dumps(answer, ensure_ascii=False, indent=1)))
    dump = site.php("maintenance/dumpBackup.php", "--full", "--quiet")
    assert "Grüße, verschoben 蛙" in dump
    browser.said.append(("dump", dump))
    browser.said.append(("statistics", site.php("maintenance/initSiteStats.php")))
