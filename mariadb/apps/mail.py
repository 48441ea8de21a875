"""A mail server for webmail: Dovecot with letters of its own making, for IMAP alone."""

from __future__ import annotations

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
from email.message import EmailMessage

from server import free_port

CONFIGURATION = """
base_dir = {work}/run
state_dir = {work}/state
log_path = {work}/log
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
default_login_user = nobody
default_internal_user = nobody
default_internal_group = nogroup
mail_location = maildir:{work}/mail/%u
passdb {{
  driver = static
  args = password={password}
}}
userdb {{
  driver = static
  args = uid=nobody gid=nogroup home={work}/mail/%u
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
}}
service anvil {{
  chroot =
}}
"""


class Mail:
    """The server, whose mailboxes are of the user nobody: Dovecot serves none of root's."""

    def __init__(self, password: str, letters: dict[str, list[EmailMessage]]) -> None:
        self.port = free_port()
        # Beside no folder that only root can enter.
        self.work = pathlib.Path(tempfile.mkdtemp(prefix="shale-mail-"))
        self.work.chmod(0o755)
        for user, all_of in letters.items():
            for kind in ("cur", "new", "tmp"):
                (self.work / "mail" / user / kind).mkdir(parents=True, exist_ok=True)
            for number, letter in enumerate(all_of):
                name = f"{1700000000 + number}.M{number}.host:2,"
                (self.work / "mail" / user / "cur" / name).write_bytes(bytes(letter))
        subprocess.run(["chown", "-R", "nobody:nogroup", str(self.work / "mail")], check=True)
        configuration = self.work / "dovecot.conf"
        configuration.write_text(
            CONFIGURATION.format(work=self.work, port=self.port, password=password)
        )
        self.process = subprocess.Popen(
            ["/usr/sbin/dovecot", "-F", "-c", str(configuration)], start_new_session=True
        )
        time.sleep(1)
        if self.process.poll() is not None:
            raise SystemExit(f"Dovecot has ended: see {self.work}/log")

    def stop(self) -> None:
        os.killpg(self.process.pid, signal.SIGTERM)
        self.process.wait()
        shutil.rmtree(self.work, ignore_errors=True)


def letter(number: int, to: str) -> EmailMessage:
    one = EmailMessage()
    one["From"] = f'"Unke № {number} 蛙" <unke{number}@example.org>'
    one["To"] = to
    one["Subject"] = f"Brief {number}: Grüße aus 東京 🐸"
    one["Date"] = f"Mon, {number + 1:02} Jan 2024 10:00:00 +0000"
    one["Message-ID"] = f"<{number}@example.org>"
    one.set_content(f"Der Ёж schreibt {'sehr ' * number}viel.\n\nGrüße ß\n")
    return one
