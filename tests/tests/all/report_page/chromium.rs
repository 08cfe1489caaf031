//! Chromium without a window, driven by the DevTools protocol over pipes.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use equipoise_tests::skip;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The longest time that the browser may need for one answer.
const PATIENCE: Duration = Duration::from_secs(120);

/// The first of the programs `names` on the PATH; skips with a note if there is none.
pub(super) fn found(names: &[&'static str]) -> Option<&'static str> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let exists = |name: &&&str| std::env::split_paths(&path).any(|folder| folder.join(name).exists());
    let found = names.iter().find(exists).copied();
    if found.is_none() {
        skip(&format!("pages of reports: the PATH has none of {}", names.join(", ")));
    }
    found
}

/// The folder of the pictures of pages that people look at.
pub(super) fn pictures() -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("reports");
    fs::create_dir_all(&folder).expect("a folder in the target folder");
    folder
}

/// A tab of a browser of its own.
pub(super) struct Chromium {
    process: Child,
    input: ChildStdin,
    answers: Receiver<Value>,
    session: Option<String>,
    calls: u64,
    /// Errors and warnings of the console, and uncaught exceptions.
    problems: VecDeque<String>,
    _profile: TempDir,
}

impl Chromium {
    /// Starts the browser with a window of 1280 x 900 pixels; none if there is no browser.
    pub(super) fn start() -> Option<Chromium> {
        let browser = found(&["chromium", "google-chrome"])?;
        let profile = tempfile::tempdir().expect("a temporary folder");
        // The protocol uses the file descriptors 3 and 4.
        let script = r#"exec "$0" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;
        let mut process = Command::new("sh")
            .args(["-c", script, browser])
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"])
            .args(["--remote-debugging-pipe", "--force-device-scale-factor=1", "--window-size=1280,900"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the browser can be started");
        let input = process.stdin.take().expect("its stdin is a pipe");
        let output = BufReader::new(process.stdout.take().expect("its stdout is a pipe"));
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for message in output.split(0).map_while(Result::ok) {
                let message = serde_json::from_slice(&message).expect("the protocol is JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let (session, problems) = (None, VecDeque::new());
        let mut tab = Chromium { process, input, answers, session, calls: 0, problems, _profile: profile };
        let targets = tab.call("Target.getTargets", json!({}));
        let pages = targets["targetInfos"].as_array().expect("a list of targets");
        let page = pages.iter().find(|target| target["type"] == "page").expect("a tab");
        let session = tab
            .call("Target.attachToTarget", json!({ "targetId": page["targetId"], "flatten": true }))
            ["sessionId"]
            .as_str()
            .map(String::from);
        tab.session = session;
        for domain in ["Page", "Runtime", "Log"] {
            tab.call(&format!("{domain}.enable"), json!({}));
        }
        Some(tab)
    }

    /// The result of a method of the protocol.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let sent = self.input.write_all(format!("{message}\0").as_bytes()).and_then(|()| self.input.flush());
        sent.expect("the browser runs");
        loop {
            let mut answer = self.answers.recv_timeout(PATIENCE).expect("the browser answers");
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].take();
            }
            let (params, text) = (&answer["params"], answer["params"].to_string());
            let is_problem = match answer["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => {
                    ["error", "warning", "assert"].map(Value::from).contains(&params["type"])
                }
                "Log.entryAdded" => ["error", "warning"].map(Value::from).contains(&params["entry"]["level"]),
                _ => false,
            };
            self.problems.extend(is_problem.then_some(text));
        }
    }

    /// Opens a report at an address such as `panel=loads`, and waits until it is drawn.
    #[track_caller]
    pub(super) fn open(&mut self, file: &Path, address: &str) {
        self.call("Page.navigate", json!({ "url": "about:blank" }));
        self.call("Page.navigate", json!({ "url": format!("file://{}#{address}", file.display()) }));
        let begin = Instant::now();
        let state = "document.body ? document.body.dataset.error || document.body.dataset.ready || '' : ''";
        loop {
            match self.value(state).as_str() {
                Some("yes") => break,
                None | Some("") => assert!(begin.elapsed() < PATIENCE, "{} is not drawn", file.display()),
                Some(error) => panic!("{}: {error}", file.display()),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        self.has_no_problem();
    }

    /// The value of a script, which may be a promise.
    #[track_caller]
    pub(super) fn value(&mut self, script: &str) -> Value {
        let params = json!({ "expression": script, "returnByValue": true, "awaitPromise": true });
        let mut answer = self.call("Runtime.evaluate", params);
        assert!(answer.get("exceptionDetails").is_none(), "{script}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].take()
    }

    /// Waits until a script gives `true`.
    #[track_caller]
    pub(super) fn wait_for(&mut self, script: &str) {
        let begin = Instant::now();
        while self.value(script) != true {
            assert!(begin.elapsed() < PATIENCE, "{script} is never true");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// The text of the value of a script.
    #[track_caller]
    pub(super) fn text(&mut self, script: &str) -> String {
        let value = self.value(script);
        value.as_str().unwrap_or_else(|| panic!("{script}: {value} is no text")).to_string()
    }

    /// Opens the text alternatives of all pictures. A page fills them when the browser tells it.
    #[track_caller]
    pub(super) fn open_texts(&mut self) {
        let opened = "[...document.querySelectorAll('details')].filter((it) => !it.open).map((it) => \
                      new Promise((done) => { it.addEventListener('toggle', done); it.open = true; }))";
        self.value(&format!("Promise.all({opened}).then(() => 0)"));
    }

    /// Presses and releases a key, as a person would.
    pub(super) fn press(&mut self, key: &str) {
        let code = match key {
            "Tab" => 9,
            "Enter" => 13,
            "End" => 35,
            "Escape" => 27,
            "Home" => 36,
            "ArrowLeft" => 37,
            "ArrowUp" => 38,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => panic!("no code is known of the key {key}"),
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let kind = if kind == "keyDown" && text.is_empty() { "rawKeyDown" } else { kind };
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text }),
            );
        }
    }

    /// Moves the mouse over a place of the element that `selector` finds, given in parts of its width and height.
    #[track_caller]
    pub(super) fn point(&mut self, selector: &str, across: f64, down: f64) {
        let script = format!(
            "{{ const it = document.querySelector({selector:?}); it.scrollIntoView({{ block: 'center' }}); const box = it.getBoundingClientRect(); \
             [box.left + {across} * box.width, box.top + {down} * box.height] }}"
        );
        let place = self.value(&script);
        self.call("Input.dispatchMouseEvent", json!({ "type": "mouseMoved", "x": place[0], "y": place[1] }));
    }

    /// The red, green, blue and opacity of a canvas at a place in the units of its drawing.
    #[track_caller]
    pub(super) fn colour(&mut self, canvas: usize, x: f64, y: f64) -> [u64; 4] {
        // A copy, because the browser warns of pictures that are read often.
        let script = format!(
            "{{ const it = document.querySelectorAll('canvas')[{canvas}], sharp = it.width / parseFloat(it.style.width); \
             const copy = new OffscreenCanvas(1, 1).getContext('2d', {{ willReadFrequently: true }}); \
             copy.drawImage(it, -Math.floor({x} * sharp), -Math.floor({y} * sharp)); [...copy.getImageData(0, 0, 1, 1).data] }}"
        );
        let pixel = self.value(&script);
        [0, 1, 2, 3].map(|at| pixel[at].as_u64().expect("a number"))
    }

    /// Whether the browser prefers dark pages.
    pub(super) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Writes a picture of the whole page.
    pub(super) fn photograph(&mut self, name: &str) {
        let size = self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"].take();
        let clip = json!({ "x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1 });
        let picture =
            self.call("Page.captureScreenshot", json!({ "captureBeyondViewport": true, "clip": clip }));
        let bytes = bytes_of(picture["data"].as_str().expect("a picture"));
        fs::write(pictures().join(format!("{name}.png")), bytes).expect("a picture can be written");
    }

    /// Checks that the console is empty.
    #[track_caller]
    pub(super) fn has_no_problem(&mut self) {
        assert!(self.problems.is_empty(), "the console has {:?}", self.problems);
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}

/// The bytes of a text in base64.
pub(super) fn bytes_of(text: &str) -> Vec<u8> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut known) = (Vec::with_capacity(text.len() * 3 / 4), 0u32, 0);
    for digit in text.chars().filter_map(|digit| DIGITS.find(digit)) {
        bits = bits << 6 | digit as u32;
        known += 6;
        if known >= 8 {
            known -= 8;
            bytes.push((bits >> known) as u8);
        }
    }
    bytes
}
