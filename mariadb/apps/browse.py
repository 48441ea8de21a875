"""A headless Chromium, what is done in it, and what its pages say."""

from __future__ import annotations

import pathlib
import re
from typing import Any

from selenium import webdriver
from selenium.common.exceptions import (
    StaleElementReferenceException, TimeoutException, WebDriverException,
)
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tables import plain

PATIENCE = 60


class Browser:
    """Acts by forms, as a person would. `said` keeps what each step's page says."""

    def __init__(self, address: str, profile: pathlib.Path) -> None:
        self.address = address
        self.said: list[tuple[str, str]] = []
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for option in (
            "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
            "--window-size=1280,1600", "--lang=en", f"--user-data-dir={profile}",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
        ):
            options.add_argument(option)
        # A page asks before it is left when something is typed: nobody answers here.
        options.set_capability("unhandledPromptBehavior", "accept")
        self.driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
        self.driver.set_page_load_timeout(300)
        self.driver.set_script_timeout(PATIENCE)

    def close(self) -> None:
        self.driver.quit()

    def go(self, path: str) -> None:
        self.driver.get(f"{self.address}/{path}")

    def find(self, selector: str) -> WebElement:
        """The first element, waited for."""
        try:
            return WebDriverWait(self.driver, PATIENCE).until(
                lambda driver: driver.find_element(By.CSS_SELECTOR, selector)
            )
        except TimeoutException:
            raise SystemExit(
                f"there is no {selector} on {self.driver.current_url}, which says:\n{self.text()}"
            ) from None

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def fill(self, **fields: str | bool) -> None:
        """Fields of a form by their names: text, a choice of a list, or a box to be ticked."""
        for name, value in fields.items():
            # A page's head has names too: `description`.
            field = self.find(f'body [name="{name}"]:not([type="hidden"])')
            if isinstance(value, bool):
                if field.is_selected() != value:
                    self.driver.execute_script("arguments[0].click()", field)
            elif field.get_attribute("type") == "file":
                field.send_keys(value)
            else:
                # Not by keys: the driver types no characters beyond the first plane, and scripts of a page
                # hide lists behind ones of their own.
                self.driver.execute_script(
                    "arguments[0].value = arguments[1];"
                    "for (const name of ['input', 'keyup', 'change'])"
                    " arguments[0].dispatchEvent(new Event(name, {bubbles: true}))",
                    field, value,
                )

    def press(self, selector: str) -> None:
        """Clicks what leads to another page, and waits for that."""
        before = self.driver.find_element(By.TAG_NAME, "html")
        self.driver.execute_script("arguments[0].click()", self.find(selector))
        WebDriverWait(self.driver, PATIENCE).until(lambda _: gone(before))
        self.settle()

    def click(self, selector: str) -> None:
        """Clicks what stays on the page."""
        self.driver.execute_script("arguments[0].click()", self.find(selector))

    def settle(self) -> None:
        WebDriverWait(self.driver, PATIENCE).until(
            lambda driver: driver.execute_script("return document.readyState") == "complete"
        )

    def until(self, script: str) -> Any:
        """Waits until a script says something true."""
        try:
            return WebDriverWait(self.driver, PATIENCE).until(
                lambda driver: driver.execute_script(f"return {script}")
            )
        except TimeoutException:
            raise SystemExit(
                f"{script} did not come true on {self.driver.current_url}:\n{self.text()}"
            ) from None

    def script(self, script: str, *values: Any) -> Any:
        """Runs a script that may wait: `async` code that returns its result."""
        answer = self.driver.execute_async_script(
            "const values = [...arguments], done = values.pop();"
            f"(async () => {{ {script} }})().then(done, error => done('error: ' + error));",
            *values,
        )
        if isinstance(answer, str) and answer.startswith("error: "):
            raise SystemExit(f"{self.driver.current_url}: {answer}")
        return answer

    def text(self, selector: str = "body") -> str:
        """What one reads. WordPress puts pictures in the place of emoji."""
        return str(self.driver.execute_script(
            "for (const one of document.querySelectorAll('img.emoji')) one.replaceWith(one.alt);"
            "const found = document.querySelector(arguments[0]);"
            "return found ? found.innerText : '(nothing)'", selector,
        ))

    def pictures(self) -> int:
        """How many pictures of the site's own the page has, each of which can be had."""
        broken = self.script(
            """
            const all = [...document.images].map(one => one.src);
            const own = [...new Set(all)].filter(one => one.startsWith(location.origin));
            for (const one of own) {
                const answer = await fetch(one);
                const kind = answer.headers.get('content-type');
                if (!answer.ok || !kind.startsWith('image/')) return `${one}: ${answer.status}`;
            }
            return own.length;
            """
        )
        if isinstance(broken, str):
            raise SystemExit(f"a picture is missing on {self.driver.current_url}: {broken}")
        return int(broken)

    def read(self, step: str, path: str, selector: str, *, in_order: bool = True) -> None:
        """Keeps what a page says to one who has no scripts, as these fill in some things later than others."""
        text = str(self.script(
            """
            const page = await (await fetch(values[0])).text();
            const found = new DOMParser().parseFromString(page, 'text/html').querySelector(values[1]);
            return found ? found.textContent : '(nothing)';
            """, f"{self.address}/{path}", selector,
        ))
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        self.said.append((step, "\n".join(lines if in_order else sorted(map(plain, lines)))))

    def keep(self, step: str, selector: str = "body", *words: str) -> None:
        """Keeps what the page says, and looks for words that it has to say."""
        text = self.text(selector)
        for word in words:
            if word not in text:
                raise SystemExit(f"{step}: {word!r} is not on {self.driver.current_url}:\n{text}")
        self.said.append((step, f"{self.driver.title}\n{text}"))


def gone(element: WebElement) -> bool:
    """Whether an element's page has been left."""
    try:
        element.is_enabled()
        return False
    except StaleElementReferenceException:
        return True
    except WebDriverException as error:
        # While a page is being replaced, Chromium says it in other words.
        return re.search("does not belong to the document|no such element", str(error)) is not None
