"""django-oscar, a shop: its dashboard, Django's admin pages, then an upgrade of both."""

from __future__ import annotations

import os
import pathlib
import shutil
import subprocess

import packages
from browse import Browser
from webapp import Site, Web

NAME = "django-oscar"
OLD = ("django-oscar[sorl-thumbnail]==3.2.6", "Django==4.2.30", "django-phonenumber-field==6.4.0")
NEW = ("django-oscar[sorl-thumbnail]==4.2.1", "Django==5.2.19", "django-phonenumber-field==8.5.0")
BOTH = ("PyMySQL==1.2.4", "pycountry==26.2.16", "phonenumbers==9.0.43")
VERSION = "3.2.6-4.2.1"
PASSWORD = "Frösche-im-Teich-7"

IGNORED = [("auth_user", "password"), ("wishlists_wishlist", "key"), ("django_session", ".*")]
# Of InnoDB Django knows that a foreign key makes its index, or finds one. Elsewhere it makes one.
IGNORED_LINES = r"  KEY .*"
IGNORED_ROWS = [("django_session", "session_key", "")]

# What the shop makes at random gets other words: names of customers, codes of vouchers.
AT_RANDOM = """
from django.contrib.auth.models import User
from oscar.apps.voucher.models import Voucher
User.objects.filter(pk=2).update(username='toad')
for number, one in enumerate(Voucher.objects.filter(voucher_set=1)):
    Voucher.objects.filter(pk=one.pk).update(code=f'C{number}')

"""

CATEGORIES = ("Lurche > Frösche", "Lurche > Kröten 🐸", "Zubehör > Teiche > 東京", "Bücher")


def python(which: tuple[str, ...]) -> pathlib.Path:
    return packages.environment(f"{NAME}-{which[0].partition('==')[2]}", (*which, *BOTH))


def variables(site: Site) -> dict[str, str]:
    return {
        "SITE_DATABASE_PORT": str(site.database_port),
        "SITE_DATABASE": site.database,
        "SITE_USER": site.user,
        "SITE_PASSWORD": site.password,
        # The order of migrations that do not need each other follows that of a set.
        "PYTHONHASHSEED": "0",
    }


def manage(site: Site, which: tuple[str, ...], *arguments: str, given: str | None = None) -> str:
    """Runs a command of the shop's."""
    return subprocess.run(
        [str(python(which)), "manage.py", *arguments],
        cwd=site.folder,
        check=True,
        input=given,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | variables(site),
    ).stdout


def prepare(site: Site) -> None:
    shutil.copytree(pathlib.Path(__file__).with_name("django_oscar_site"), site.folder)
    (site.folder / "log").write_text(manage(site, OLD, "migrate"))
    manage(site, OLD, "oscar_populate_countries", "--initial-only")
    catalogue = site.folder / "catalogue.csv"
    with open(catalogue, "w") as file:
        for number in range(60):
            file.write(
                f'Lurch,{CATEGORIES[number % 4]},{1000 + number},"Lurch № {number} 蛙 🐸",'
                f'"Ein {"sehr " * (number % 7)}großer Ёж {number}",Händler {number % 3},L{number},'
                f"{number}.{number % 90 + 10},{number * 3}\n"
            )
    manage(site, OLD, "oscar_import_catalogue", str(catalogue))
    manage(
        site,
        OLD,
        "shell",
        given="from django.contrib.auth.models import User\n"
        f"User.objects.create_superuser('frosch', 'frosch@example.org', '{PASSWORD}')\n",
    )


def serve(site: Site) -> Web:
    return served(site, OLD)


def served(site: Site, which: tuple[str, ...]) -> Web:
    return Web(
        site,
        [
            str(python(which)),
            "manage.py",
            "runserver",
            "--noreload",
            "--insecure",
            f"127.0.0.1:{site.port}",
        ],
        **variables(site),
    )


def send(browser: Browser, path: str, step: str, *words: str, **fields: str | bool) -> None:
    """Fills a form, sends it, and keeps what the next page says."""
    browser.go(path)
    # Editors write what they have into their fields when a form is sent.
    browser.script("if (window.tinymce) tinymce.remove(); return 1")
    browser.fill(**fields)
    sent(browser, next(iter(fields)), step, *words)


def sent(browser: Browser, field: str, step: str, *words: str) -> None:
    """Sends the form that has a field."""
    if "admin/" in browser.driver.current_url:
        browser.press(f'form:has([name="{field}"]) [name="_save"]')
    else:
        browser.press(f'form:has([name="{field}"]) [type="submit"]:not([formaction])')
    browser.keep(step, "body", *words)


def install(site: Site, browser: Browser) -> None:
    send(
        browser,
        "accounts/login/",
        "logged in",
        "frosch@example.org",
        **{"login-username": "frosch@example.org", "login-password": PASSWORD},
    )
    browser.go("dashboard/")
    browser.keep("dashboard", "body", "Total products\t60")


def use(site: Site, browser: Browser, image: pathlib.Path) -> None:
    dashboard(browser, image)
    shop(browser)
    manage(site, OLD, "shell", given=AT_RANDOM)
    orders(browser)
    admin(browser)
    looks(browser)


def dashboard(browser: Browser, image: pathlib.Path) -> None:
    send(browser, "dashboard/partners/create/", "partner", "Händlerin 蛙", name="Händlerin 蛙")
    send(
        browser,
        "dashboard/catalogue/categories/create/",
        "category",
        "Neue Kategorie 🐸",
        name="Neue Kategorie 🐸",
        description="Beschreibung ß",
    )
    browser.go("dashboard/catalogue/products/create/lurch/")
    browser.fill(
        title="Laubfrosch Ж",
        upc="9001",
        **{
            "productcategory_set-0-category": "1",
            "stockrecords-0-partner": "4",
            "stockrecords-0-partner_sku": "LF-1",
            "stockrecords-0-price": "12.50",
            "stockrecords-0-num_in_stock": "17",
            "images-0-original": str(image),
        },
    )
    browser.press('button[name="action"][value="save"]')
    browser.keep("product", "body", "Laubfrosch Ж")
    send(
        browser,
        "dashboard/ranges/create/",
        "range",
        "Alles",
        name="Alles ß",
        includes_all_products=True,
    )
    offer(browser, "Zehn Prozent", "Site", "3")
    offer(browser, "Gutschein 蛙", "Voucher", "9")
    send(
        browser,
        "dashboard/vouchers/create/",
        "voucher",
        "QUAK",
        name="Quak",
        code="quak",
        offers="2",
        start_datetime="2020-01-01 00:00:00",
        end_datetime="2050-01-01 00:00:00",
        usage="Multi-use",
    )
    send(
        browser,
        "dashboard/vouchers/sets/create/",
        "set of vouchers",
        "Satz",
        name="Satz",
        count="20",
        code_length="6",
        offers="2",
        description="zwanzig",
        start_datetime="2020-01-01 00:00:00",
        end_datetime="2050-01-01 00:00:00",
        usage="Single use",
    )


def offer(browser: Browser, name: str, kind: str, priority: str) -> None:
    browser.go("dashboard/offers/new/metadata/")
    browser.fill(name=name, offer_type=kind)
    browser.press('form:has([name="offer_type"]) [type="submit"]')
    browser.fill(range="1", type="Percentage", value="10")
    browser.press('form:has([name="value"]) [type="submit"]')
    browser.fill(range="1", type="Count", value="1")
    browser.press('form:has([name="value"]) [type="submit"]')
    browser.fill(priority=priority, start_datetime="2020-01-01 00:00:00")
    browser.press('form:has([name="priority"]) [type="submit"]')
    browser.keep(f"offer {name}", "body", name)


def log_out(browser: Browser) -> None:
    browser.driver.delete_all_cookies()


def log_in(browser: Browser, address: str) -> None:
    browser.go("accounts/login/")
    browser.fill(**{"login-username": address, "login-password": PASSWORD})
    browser.press('form:has([name="login-username"]) [type="submit"]')


ADDRESS = {
    "first_name": "Kröte",
    "last_name": "Ünkenruf",
    "line1": "Teichstraße 5",
    "line4": "東京 🐸",
    "postcode": "12345",
    "country": "DE",
}


def shop(browser: Browser) -> None:
    log_out(browser)
    send(
        browser,
        "accounts/register/",
        "registered",
        "toad@example.org",
        email="toad@example.org",
        password1=PASSWORD,
        password2=PASSWORD,
    )
    for number in (3, 8, 61):
        browser.go(f"catalogue/anything_{number}/")
        browser.press("#add_to_basket_form [type=submit]")
        browser.keep(f"basket with {number}", "body", "has been added to your cart")
    browser.go("catalogue/anything_8/reviews/add/")
    browser.fill(title="Sehr gut 蛙", score="5", body="Quakt laut ß")
    sent(browser, "body", "review", "Thank you for reviewing")
    send(browser, "accounts/wishlists/create/", "wish list", "Wünsche 🐸", name="Wünsche 🐸")
    browser.go("catalogue/anything_9/")
    browser.press(".btn-wishlist a.dropdown-item")
    browser.keep("wished", "body", "wish list")
    send(browser, "basket/", "voucher used", "Coupon 'QUAK' added", code="quak")
    browser.go("checkout/")
    browser.keep("asked for an address", "body", "Where should we ship to?")
    browser.fill(**ADDRESS)
    sent(browser, "postcode", "payment", "Enter payment details")
    browser.press("#view_preview")
    browser.keep("preview", "body", "Teichstraße 5")
    browser.press("#place-order")
    browser.keep("thanks", "body", "Confirmation", "12345")
    for turn in range(3):
        browser.go(f"catalogue/anything_{turn + 20}/")
        browser.press("#add_to_basket_form [type=submit]")
        browser.go("checkout/")
        browser.press("[id^=select_shipping_address] [type=submit]")
        browser.press("#view_preview")
        browser.press("#place-order")
        browser.keep(f"order {turn}", "body", "Confirmation")
    browser.go("accounts/orders/")
    browser.keep("own orders", "body", "10000")
    send(
        browser,
        "accounts/addresses/add/",
        "address",
        "Zweite Gasse",
        **(ADDRESS | {"line1": "Zweite Gasse"}),
    )
    log_out(browser)


def orders(browser: Browser) -> None:
    log_in(browser, "frosch@example.org")
    browser.go("dashboard/orders/")
    browser.keep("orders", "table", "Pending")
    numbers = [
        one.text.lstrip("#") for one in browser.all('td a[href*="/dashboard/orders/1"]') if one.text
    ]
    number = sorted(set(numbers))[0]
    browser.go(f"dashboard/orders/{number}/")
    browser.keep("order", "body", "Items ordered")
    browser.driver.execute_script(
        "document.querySelector('#order_status_form [name=new_status]').value = 'Being processed'"
    )
    browser.press("#order_status_form [type=submit]")
    browser.keep("order's status", "body", "Order status changed from 'Pending'")
    browser.go(f"dashboard/orders/{number}/")
    browser.fill(message="Bitte leise liefern 蛙")
    browser.press('form:has([name="message"]) [type="submit"]')
    browser.keep("order's note", "body", "Note saved")
    send(
        browser,
        f"dashboard/orders/{number}/shipping-address/",
        "order's address",
        "Order #1",
        line1="Dritter Weg",
    )
    browser.go("dashboard/reviews/1/")
    browser.fill(status="1")
    browser.press('form:has([name="status"]) [type="submit"]')
    browser.keep("reviews", "body", "Sehr gut 蛙")


# Each with a form of the admin's: what is written there, and found by a search.
ADDED = {
    "auth/group": {"name": "Gruppe 🐸", "permissions": "3"},
    "flatpages/flatpage": {"url": "/grüße/", "title": "Grüße", "content": "Ж 蛙", "sites": "1"},
    "catalogue/productclass": {"name": "Bücherei"},
    "catalogue/option": {"name": "Größe", "type": "text"},
    "partner/partner": {"name": "Partnerin"},
    "sites/site": {"domain": "frösche.example", "name": "Zweite"},
    "order/ordernote": {"order": "1", "user": "1", "message": "vom Admin 🐸"},
}


def admin(browser: Browser) -> None:
    browser.go("admin/")
    browser.keep("admin", "#content-main", "Groups")
    for model, fields in ADDED.items():
        send(
            browser,
            f"admin/{model}/add/",
            f"admin: {model} added",
            "was added successfully",
            **fields,
        )
    browser.go("admin/auth/group/1/change/")
    browser.fill(name="Gruppe, umbenannt ß")
    sent(browser, "name", "admin: changed", "was changed successfully")
    browser.go("admin/auth/group/1/history/")
    browser.keep("admin: history", "#content", "frosch")
    browser.go("admin/catalogue/product/61/change/")
    browser.fill(title="Laubfrosch, geändert", **{"productcategory_set-0-category": "2"})
    sent(browser, "title", "admin: a product with its lists", "was changed successfully")
    # What goes with a row is told before: Django deletes all that itself, child before parent.
    for model, key in (("partner/partner", 1), ("catalogue/category", 3), ("auth/user", 2)):
        browser.go(f"admin/{model}/{key}/delete/")
        browser.keep(f"admin: {model} to be deleted", "#content", "delete")
        if browser.all('#content form [type="submit"]'):
            browser.press('#content form [type="submit"]')
            browser.keep(f"admin: {model} deleted", "#content", "")
    browser.go("admin/catalogue/product/?q=Lurch")
    browser.fill(action="delete_selected")
    for box in browser.all('[name="_selected_action"]')[:5]:
        box.click()
    browser.press('[name="index"]')
    browser.keep("admin: products to be deleted", "#content", "Are you sure")
    browser.press('#content form [type="submit"]')
    browser.keep("admin: products deleted", "body", "Successfully deleted")


LISTS = (
    "catalogue/",
    "catalogue/?page=2",
    "catalogue/category/lurche_1/",
    "search/?q=Lurch",
    "offers/",
    "dashboard/catalogue/?title=蛙",
    "dashboard/users/",
    "dashboard/offers/",
    "dashboard/reports/?report_type=order_report&date_from=2020-01-01&date_to=2050-01-01",
    "dashboard/reports/?report_type=product_purchases&date_from=2020-01-01&date_to=2050-01-01",
    "dashboard/orders/statistics/?date_from=2020-01-01&date_to=2050-01-01",
)


def looks(browser: Browser, after: str = "") -> None:
    for path in LISTS:
        browser.read(f"{after}{path}", path, "#content_inner, main, .page_inner, body")
    browser.go("admin/")
    for link in browser.all('#content-main th a[href*="/admin/"]'):
        path = (link.get_attribute("href") or "").removeprefix(f"{browser.address}/")
        if path.count("/") == 3:
            browser.read(f"{after}{path}", path, "#content-main", in_order=False)
            browser.read(f"{after}{path} for 蛙", f"{path}?q=蛙", "#content-main", in_order=False)


def upgrade(site: Site, browser: Browser) -> None:
    site.stop()
    migrated = manage(site, NEW, "migrate")
    browser.said.append(("migrations", migrated))
    browser.said.append(("migrations, all", manage(site, NEW, "showmigrations")))
    site.serve(served(site, NEW))
    log_out(browser)
    log_in(browser, "frosch@example.org")
    looks(browser, "upgraded: ")
    send(browser, "dashboard/partners/create/", "upgraded: partner", "Neuer 蛙", name="Neuer 蛙")
    browser.go("admin/catalogue/product/7/delete/")
    browser.press('#content form [type="submit"]')
    browser.keep("upgraded: product deleted", "body", "was deleted successfully")
    data = manage(
        site,
        NEW,
        "dumpdata",
        "--exclude=sessions",
        "--exclude=contenttypes",
        "--exclude=auth.Permission",
        # A view that no migration makes.
        "--exclude=catalogue.ProductCategoryHierarchy",
    )
    (site.work / "data.json").write_text(data)
    # Into the tables as they are, in one transaction, with checks of foreign keys at its end.
    manage(site, NEW, "loaddata", str(site.work / "data.json"))
