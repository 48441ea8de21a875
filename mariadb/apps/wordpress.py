"""WordPress: installed by its forms, written in, read, and tidied."""

from __future__ import annotations

import pathlib
import time

from browse import Browser
from webapp import Site

NAME = "wordpress"
PACKAGES = (
    "wordpress", "wordpress-theme-twentytwentythree", "libjs-cropper", "libjs-underscore",
    "libjs-prototype", "libjs-scriptaculous", "php-getid3",
)
# What is made of the packages' folders: the last covers the first.
FOLDERS = ("usr/share/wordpress", "var/lib/wordpress")
REMOVED = ("wp-config.php", ".htaccess")
PASSWORD = "Passwörter-sind-läng-1"
TITLE = "Grüße aus 東京 🐸"
TEXT = "Ein Frosch sagt “quak”, ein Ёж schweigt. 蛙は跳ぶ。 Ð ø ß 🐸🐸"

# What a row has that the engine does not decide: (table, column) as patterns. Times and tokens that are
# recognized by their form are taken out everywhere (tables.py).
IGNORED = [
    ("wp_users", "user_pass"),
    ("wp_users", "user_activation_key"),
]
IGNORED_ROWS = [
    # Kept answers with the moment at which they end; which of them there are depends on the clock.
    ("wp_options", "option_name", r"^_(site_)?transient_"),
    # The moments at which tasks are due.
    ("wp_options", "option_name", r"^cron$"),
    # What the editor remembers of its windows, and sends after a while.
    ("wp_usermeta", "meta_key", r"^wp_persisted_preferences$"),
    # Asked by a script of some page, at any time: its number is one or another.
    ("wp_options", "option_name", r"^can_compress_scripts$"),
]


def prepare(site: Site) -> None:
    """Nothing to do: WordPress names no engine."""


def log_in(browser: Browser) -> None:
    browser.go("wp-login.php")
    browser.fill(log="frog", pwd=PASSWORD)
    browser.press("#wp-submit")
    browser.find("#wpadminbar")


def install(site: Site, browser: Browser) -> None:
    browser.go("wp-admin/setup-config.php?step=1&language=en_US")
    browser.fill(dbname=site.database, uname=site.user, pwd=site.password, dbhost=site.host, prefix="wp_")
    browser.press("input[type=submit]")
    browser.keep("configured", "body", "All right")
    # No tasks and requests by themselves: they come when they like.
    configuration = site.folder / "wp-config.php"
    text = configuration.read_text()
    quiet = "".join(
        f"define('{name}', true);\n"
        for name in ("DISABLE_WP_CRON", "WP_HTTP_BLOCK_EXTERNAL", "AUTOMATIC_UPDATER_DISABLED", "WP_DEBUG_LOG")
    )
    configuration.write_text(text.replace("/* That's all", f"{quiet}/* That's all", 1))
    assert quiet in configuration.read_text()
    browser.go("wp-admin/install.php?language=en_US")
    browser.find("#weblog_title")
    browser.until("document.readyState == 'complete'")
    browser.fill(weblog_title="Fröschli & 蛙 🐸", user_name="frog", admin_email="frog@example.org")
    browser.fill(admin_password=PASSWORD)
    browser.driver.execute_script(
        "for (const name of ['pass2', 'admin_password2']) {"
        " const field = document.querySelector(`[name=${name}]`);"
        " if (field) field.value = arguments[0] }"
        "document.querySelector('[name=pw_weak]')?.click()", PASSWORD,
    )
    browser.press("#submit")
    browser.keep("installed", "body", "Success!")


def post(browser: Browser, title: str, text: str, status: str = "publish", kind: str = "post") -> int:
    """Writes in the editor: its own state and its own way of saving, which the buttons use too."""
    browser.go(f"wp-admin/post-new.php?post_type={kind}")
    editor(browser)
    return int(browser.script(
        """
        const [title, text, status] = values;
        const {dispatch, select} = wp.data;
        const parts = text.split('\\n').map(part => wp.blocks.createBlock('core/paragraph', {content: part}));
        await dispatch('core/block-editor').insertBlocks(parts);
        await dispatch('core/editor').editPost({title, status});
        await dispatch('core/editor').savePost();
        if (!select('core/editor').didPostSaveRequestSucceed()) throw Error('not saved');
        return select('core/editor').getCurrentPostId();
        """, title, text, status,
    ))


def editor(browser: Browser) -> None:
    browser.until(
        "!!window.wp?.data?.select('core/editor')?.getCurrentPostId()"
        " && wp.data.select('core/editor').__unstableIsEditorReady()"
    )


def edit(browser: Browser, number: int, **changes: object) -> None:
    browser.go(f"wp-admin/post.php?post={number}&action=edit")
    editor(browser)
    browser.script(
        """
        const [changes] = values;
        const {dispatch, select} = wp.data;
        if (changes.text) {
            const blocks = [wp.blocks.createBlock('core/paragraph', {content: changes.text})];
            if (changes.image) blocks.push(wp.blocks.createBlock('core/image', changes.image));
            await dispatch('core/block-editor').resetBlocks(blocks);
            delete changes.text; delete changes.image;
        }
        await dispatch('core/editor').editPost(changes);
        await dispatch('core/editor').savePost();
        if (!select('core/editor').didPostSaveRequestSucceed()) throw Error('not saved');
        """, changes,
    )


def upload(browser: Browser, image: pathlib.Path) -> tuple[int, str]:
    """Uploads by the old form; gives the image's number and address."""
    browser.go("wp-admin/media-new.php?browser-uploader")
    browser.fill(**{"async-upload": str(image)})
    browser.press("#html-upload")
    browser.go("wp-admin/upload.php?mode=list")
    browser.keep("media", "#the-list", image.stem)
    link = browser.find("#the-list .has-media-icon a").get_attribute("href") or ""
    number = int(link.split("post=")[1].split("&")[0])
    browser.go(f"wp-admin/post.php?post={number}&action=edit")
    # The name of the file, which WordPress has made plain.
    browser.keep("an image", "#wpbody-content", "Froschchen.png")
    return number, str(browser.find("#attachment_url").get_attribute("value"))


def comment(browser: Browser, number: int, author: str, text: str) -> None:
    browser.go(f"?p={number}")
    browser.fill(author=author, email=f"{len(author)}@example.org", comment=text)
    browser.press("#submit")
    if "too quickly" in browser.text():
        # One may comment every 15 seconds.
        time.sleep(16)
        comment(browser, number, author, text)


def row_action(browser: Browser, page: str, row: str, action: str) -> None:
    """A link below a row of a list, which shows when one points at the row."""
    browser.go(page)
    browser.press(f"{row} .row-actions .{action} a")


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    log_in(browser)
    browser.go("wp-admin/options-general.php")
    browser.fill(blogdescription="«Sümpfe» — 沼 🌿", date_format="Y-m-d", timezone_string="Europe/Zurich")
    browser.press("#submit")
    browser.keep("settings", ".settings-error", "Settings saved")

    # No two names that are equal to the collation: their order is nobody's.
    for taxonomy, names in (
        ("category", ("Lurche 🐸", "Kröten", "Molche ß")), ("post_tag", ("grün", "蛙", "лягушка")),
    ):
        for word in names:
            browser.go(f"wp-admin/edit-tags.php?taxonomy={taxonomy}")
            browser.find("#tag-name")
            browser.until("document.readyState == 'complete' && !!window.jQuery")
            browser.fill(**{"tag-name": word, "description": f"von {word}"})
            before = len(browser.all("#the-list tr:not(.no-items)"))
            browser.click("#submit")
            browser.until(f"document.querySelectorAll('#the-list tr:not(.no-items)').length > {before}")
            browser.keep(f"{taxonomy} {word}", "#ajax-response")
        browser.go(f"wp-admin/edit-tags.php?taxonomy={taxonomy}&orderby=name")
        browser.keep(f"all of {taxonomy}", "#the-list")

    first = post(browser, TITLE, TEXT)
    second = post(browser, "Zweiter", "kurz\n" + "lang " * 3000, "draft")
    page = post(browser, "Über uns", "Wir sind " + "Frösche. " * 50, kind="page")
    picture, address = upload(browser, image)
    for turn in range(3):
        edit(
            browser, first, text=f"{TEXT} Fassung {turn}",
            image={"id": picture, "url": address, "alt": "Ein Fröschchen", "caption": "蛙"},
            featured_media=picture,
        )
    edit(browser, second, title="Zweiter, veröffentlicht", status="publish")
    browser.go(f"wp-admin/post.php?post={first}&action=edit")
    editor(browser)
    terms = browser.script(
        "const of = path => wp.apiFetch({path: `/wp/v2/${path}?per_page=100&orderby=id`});"
        "return [(await of('categories')).map(one => one.id), (await of('tags')).map(one => one.id)]"
    )
    edit(browser, first, categories=terms[0][1:], tags=terms[1])

    browser.go(f"?p={first}")
    browser.keep("the post", "body", TITLE, "Fassung 2", "Ein Frosch sagt")
    assert browser.pictures() > 0
    browser.go("")
    browser.keep("front page", "body", TITLE, "Zweiter, veröffentlicht")
    browser.go(f"?page_id={page}")
    browser.keep("a page", "body", "Über uns")

    revisions(browser, first)

    browser.driver.delete_all_cookies()
    comment(browser, first, "Gast Ü", "Schön! 🐸 <b>fett</b> und 'quak'")
    browser.keep("a comment waits", "body", "awaiting moderation")
    comment(browser, second, "Łukasz", "Второй комментарий")
    comment(browser, second, "spammer", "buy frogs")
    for words in ("蛙", "quak", "FROSCH", "frosch", "lang lang", "%", "nichts-davon", "Über"):
        browser.go(f"?s={words.replace('%', '%25')}")
        browser.keep(f"search {words}", "body")

    log_in(browser)
    browser.go("wp-admin/edit-comments.php")
    browser.keep("comments", "#the-comment-list", "Gast Ü", "Łukasz")
    ids = [one.get_attribute("id") for one in browser.all("#the-comment-list > tr[id^=comment-]")]
    # The latest first: spam, one to be approved, one to be approved; the first is WordPress's own.
    for row, action, count in ((ids[0], "spam", 1), (ids[1], "approve", 1), (ids[2], "approve", 1)):
        browser.go("wp-admin/edit-comments.php")
        browser.click(f"#{row} .row-actions .{action} a")
        browser.until("window.jQuery && jQuery.active === 0")
    browser.go("wp-admin/edit-comments.php?comment_status=all")
    browser.keep("comments approved", "#wpbody-content")
    browser.go(f"?p={second}")
    browser.keep("a post with comments", "body", "Второй комментарий")

    trash(browser, second, page)
    browser.go("wp-admin/edit.php?orderby=title&order=asc")
    browser.keep("list of posts", "#the-list")
    browser.go("wp-admin/index.php")
    browser.keep("dashboard", "#dashboard_right_now")
    user(browser)
    browser.go("wp-admin/export.php")
    exported = browser.script("return await (await fetch('export.php?download=true&content=all')).text()")
    assert TITLE in exported, exported[:500]
    browser.said.append(("export", exported))
    browser.go("?feed=rss2")
    browser.said.append(("feed", browser.driver.page_source))
    browser.go("wp-admin/site-health.php?tab=debug")
    browser.keep("database", "#health-check-accordion-block-wp-database")


def revisions(browser: Browser, number: int) -> None:
    """Looks at what a post was, and restores it."""
    browser.go(f"wp-admin/post.php?post={number}&action=edit")
    editor(browser)
    earlier = browser.script(
        f"return (await wp.apiFetch({{path: '/wp/v2/posts/{number}/revisions?per_page=100'}}))"
        ".map(one => one.id).sort((a, b) => a - b)"
    )
    browser.go(f"wp-admin/revision.php?revision={earlier[0]}")
    browser.find(".revisions-diff .diff")
    browser.keep("revisions", ".revisions-diff")
    browser.press(".restore-revision:not([disabled])")
    browser.go(f"?p={number}")
    browser.keep("a revision restored", "body", TITLE)
    edit(browser, number, text=f"{TEXT} endgültig")


def trash(browser: Browser, second: int, page: int) -> None:
    gone = post(browser, "Wird gelöscht", "weg damit")
    row_action(browser, "wp-admin/edit.php", f"#post-{second}", "trash")
    browser.keep("in the trash", "#wpbody-content", "1 post moved to the Trash")
    row_action(browser, "wp-admin/edit.php", f"#post-{gone}", "trash")
    row_action(browser, "wp-admin/edit.php?post_type=page", f"#post-{page}", "trash")
    browser.go("wp-admin/edit.php?post_status=trash")
    browser.keep("the trash", "#the-list", "Wird gelöscht")
    row_action(browser, "wp-admin/edit.php?post_status=trash", f"#post-{second}", "untrash")
    browser.keep("restored", "#wpbody-content", "1 post restored")
    row_action(browser, "wp-admin/edit.php?post_status=trash", f"#post-{gone}", "delete")
    browser.keep("deleted", "#wpbody-content", "1 post permanently deleted")
    edit(browser, second, status="publish")


def user(browser: Browser) -> None:
    browser.go("wp-admin/user-new.php")
    browser.find("#createuser")
    browser.until("document.readyState == 'complete'")
    browser.fill(
        user_login="toad", email="toad@example.org", first_name="Kröte", last_name="Ünkenruf", role="author",
        send_user_notification=False,
    )
    browser.driver.execute_script(
        "for (const name of ['pass1', 'pass2']) document.querySelector(`[name=${name}]`).value = arguments[0];"
        "document.querySelector('[name=pw_weak]')?.click()", PASSWORD,
    )
    browser.press("#createusersub")
    browser.keep("users", "#the-list", "Kröte")
    row_action(browser, "wp-admin/users.php", "#the-list tr:last-child", "delete")
    browser.press("#submit")
    browser.keep("a user deleted", "#wpbody-content", "User deleted")
