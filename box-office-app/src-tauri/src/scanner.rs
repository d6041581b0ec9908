//! The keys of a counter's window, before the web view hears of them: a scanner's are used up, a hand's go on to it.
//! What is which is the core's to say (`scan.rs`), by the keyboard's own numbers: no layout and no Caps Lock matters.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    rc::Rc,
    time::{Duration, Instant},
};

use fullhouse_box_office::scan::{self, Code, KeyEvent, Scanner, Settings};
use gtk::{
    ApplicationWindow, gdk,
    glib::{self, ControlFlow, Priority, Propagation},
    prelude::*,
};
use tauri::{AppHandle, Manager, WebviewWindow};

use crate::shell::Shell;

/// Listens to a window's keys for as long as there is one.
pub fn listen(window: &WebviewWindow) -> tauri::Result<()> {
    let shown = window.clone();
    window.run_on_main_thread(move || {
        if let Ok(window) = shown.gtk_window() {
            let keys = Rc::new(Keys::new(shown.app_handle().clone(), window.clone()));
            let ends = Rc::clone(&keys);
            window.connect_key_press_event(move |_, event| keys.key(event, true));
            window.connect_key_release_event(move |_, event| ends.key(event, false));
        }
    })
}

struct Keys {
    app: AppHandle,
    window: ApplicationWindow,
    begun: Instant,
    state: RefCell<State>,
}

struct State {
    scanner: Scanner,
    /// Keys that may be a scan's.
    held: BTreeMap<u64, gdk::EventKey>,
    next_id: u64,
}

impl Keys {
    fn new(app: AppHandle, window: ApplicationWindow) -> Self {
        let settings = Settings { layout: app.state::<Shell>().home.scanner_layout(), ..Settings::default() };
        let state = State { scanner: Scanner::new(settings), held: BTreeMap::new(), next_id: 0 };
        Self { app, window, begun: Instant::now(), state: RefCell::new(state) }
    }

    fn key(self: &Rc<Self>, event: &gdk::EventKey, down: bool) -> Propagation {
        // The display's own time: a moment in which this program was busy makes no key late. Keys without one are
        // another program's.
        let at_ms = match event.time() {
            0 => self.begun.elapsed().as_millis() as u64,
            time => u64::from(time),
        };
        let mut state = self.state.borrow_mut();
        state.next_id += 1;
        let id = state.next_id;
        let code = Code::of_xkb(event.hardware_keycode());
        let verdict = state.scanner.key(KeyEvent { id, code, down, at_ms });
        if verdict.held {
            state.held.insert(id, event.clone());
        }
        let propagation = if verdict.held { Propagation::Stop } else { Propagation::Proceed };
        drop(state);
        self.act(verdict.released, verdict.scan);
        self.wait();
        propagation
    }

    /// What a hand typed goes on to the web view; what was scanned is told.
    fn act(&self, released: Vec<u64>, scan: Option<scan::Scan>) {
        for id in released {
            let event = self.state.borrow_mut().held.remove(&id);
            if let Some(event) = event {
                self.window.propagate_key_event(&event);
            }
        }
        if let Some(scan) = scan {
            self.tell(scan);
        }
        let mut state = self.state.borrow_mut();
        if state.scanner.deadline_ms().is_none() {
            state.held.clear(); // used up
        }
    }

    /// Behind the keys that wait to be heard: they are not late because a timer was faster.
    fn wait(self: &Rc<Self>) {
        let Some(deadline_ms) = self.state.borrow().scanner.deadline_ms() else { return };
        let (keys, last) = (Rc::clone(self), self.state.borrow().next_id);
        let after = Duration::from_millis(Settings::default().gap_ms + 1);
        glib::timeout_add_local_full(after, Priority::DEFAULT_IDLE, move || {
            if keys.state.borrow().next_id == last {
                let verdict = keys.state.borrow_mut().scanner.rest(deadline_ms);
                keys.act(verdict.released, verdict.scan);
            }
            ControlFlow::Break
        });
    }

    /// A scanner that types the test page's code has told what it is set to.
    fn tell(&self, scan: scan::Scan) {
        let shell = self.app.state::<Shell>();
        let text = match scan::learn(&scan.keys) {
            Some(layout) => {
                self.state.borrow_mut().scanner.set_layout(layout);
                if let Err(error) = shell.home.keep_scanner_layout(layout) {
                    eprintln!("box-office: the scanner's layout is not kept: {error}");
                }
                Some(scan::TEST_CODE.to_owned())
            }
            None => scan.text,
        };
        shell.tell_scan(text);
    }
}
