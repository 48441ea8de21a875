//! A headless browser, driven over a pipe (Chromium's DevTools protocol): open a page, ask it things,
//! take its picture.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A browser with one page.
pub struct Browser {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    next: u64,
    session: Option<String>,
    /// Addresses that pages asked for.
    pub requests: Vec<String>,
    /// What scripts complained about.
    pub complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The browser's program: $SHALE_CHROMIUM, or one in the path.
pub fn program() -> Option<String> {
    let asked = std::env::var("SHALE_CHROMIUM").ok();
    asked.into_iter().chain(["chromium".to_owned(), "chromium-browser".to_owned()]).find(|name| {
        let mut command = Command::new(name);
        command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    })
}

impl Browser {
    /// Starts it with a fresh profile and an empty page.
    pub fn start(program: &str) -> Browser {
        let profile = tempfile::tempdir().unwrap();
        let flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--remote-debugging-pipe",
        ];
        // The browser speaks over the descriptors 3 and 4.
        let script = "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null";
        let mut child = Command::new("sh")
            .args(["-c", script, program])
            .args(flags)
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        let mut browser = Browser {
            child,
            to,
            from,
            next: 0,
            session: None,
            requests: Vec::new(),
            complaints: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = session["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"] {
            browser.call(domain, json!({}));
        }
        browser
    }

    fn read(&mut self) -> Value {
        let mut message = Vec::new();
        self.from.read_until(0, &mut message).unwrap();
        assert!(!message.is_empty(), "the browser went away");
        message.pop();
        let message: Value = serde_json::from_slice(&message).unwrap();
        match message["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let url = message["params"]["request"]["url"].as_str().unwrap_or_default();
                self.requests.push(url.to_owned());
            }
            Some("Runtime.exceptionThrown") => {
                self.complaints.push(message["params"]["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") => {
                self.complaints.push(message["params"]["entry"].to_string());
            }
            _ => {}
        }
        message
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.next += 1;
        let mut call = json!({ "id": self.next, "method": method, "params": params });
        if let Some(session) = &self.session {
            call["sessionId"] = json!(session);
        }
        let mut text = call.to_string().into_bytes();
        text.push(0);
        self.to.write_all(&text).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.next {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    /// Sets the page's width, height and preferred colours; a narrow page is that of a phone.
    pub fn look(&mut self, width: u32, height: u32, scheme: &str) {
        let phone = width < 600;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": if phone { 2 } else { 1 },
            "mobile": phone,
        });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens an address and waits until it is loaded.
    pub fn open(&mut self, url: &str) {
        self.call("Page.navigate", json!({ "url": url }));
        while self.read()["method"] != "Page.loadEventFired" {}
        // What a page does after it was resized comes with the next frames.
        self.value("new Promise(done => requestAnimationFrame(() => setTimeout(done, 100)))");
    }

    /// The value of an expression in the page, waited for if it is a promise.
    pub fn value(&mut self, expression: &str) -> Value {
        let params =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Presses a key.
    pub fn press(&mut self, key: &str) {
        for kind in ["keyDown", "keyUp"] {
            self.call("Input.dispatchKeyEvent", json!({ "type": kind, "key": key, "code": key }));
        }
    }

    /// Writes a picture of the whole page, or of its part from `top` on.
    pub fn picture(&mut self, path: &Path) {
        let params = json!({ "format": "png", "captureBeyondViewport": true });
        let answer = self.call("Page.captureScreenshot", params);
        std::fs::write(path, decoded(answer["data"].as_str().unwrap())).unwrap();
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        let close = json!({ "id": 0, "method": "Browser.close" }).to_string() + "\0";
        if self.to.write_all(close.as_bytes()).is_err() {
            let _ = self.child.kill();
        }
        let _ = self.child.wait();
    }
}

/// Base 64.
fn decoded(text: &str) -> Vec<u8> {
    let digit = |byte: u8| match byte {
        b'A'..=b'Z' => u32::from(byte - b'A'),
        b'a'..=b'z' => u32::from(byte - b'a') + 26,
        b'0'..=b'9' => u32::from(byte - b'0') + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut out = Vec::new();
    for group in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits = group.iter().fold(0, |bits, &byte| bits << 6 | digit(byte));
        let bits = bits << (6 * (4 - group.len()));
        out.extend(&bits.to_be_bytes()[1..group.len()]);
    }
    out
}
