//! One window at a time, by what this machine is. Its label decides which capability file holds for it.

use fullhouse_box_office::terminal::{Record, Role};
use tauri::{AppHandle, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder};

use crate::{kiosk, scanner, shell::Shell};

const SETUP: &str = "setup";
const COUNTER: &str = "counter";
const KIOSK: &str = "kiosk";

/// Which window this machine shows. A kiosk without its PIN could not be left: it is set up first.
fn label_of(record: Option<&Record>) -> &'static str {
    match record {
        Some(Record { role: Role::Counter, .. }) => COUNTER,
        Some(Record { role: Role::Kiosk, exit_pin: Some(_), .. }) => KIOSK,
        _ => SETUP,
    }
}

/// Opens the window that this machine shows now, and closes the one that it showed before.
pub fn open(app: &AppHandle) -> tauri::Result<()> {
    let record = app.state::<Shell>().terminal().map(|terminal| terminal.record);
    let label = label_of(record.as_ref());
    if app.get_webview_window(label).is_some() {
        return Ok(());
    }
    let before: Vec<_> = app.webview_windows().into_values().collect();
    let window = build(app, label)?;
    match label {
        KIOSK => kiosk::keep_open(&window)?,
        COUNTER => scanner::listen(&window)?,
        _ => {}
    }
    for old in before {
        old.destroy()?;
    }
    Ok(())
}

/// A script that closed its own window would leave a kiosk without a screen. In all frames: each has a `close` of its own.
const STAYS_OPEN: &str = "for (const owner of [window, Object.getPrototypeOf(window)]) \
     Object.defineProperty(owner, 'close', { value() {}, writable: false, configurable: false });";

fn build(app: &AppHandle, label: &str) -> tauri::Result<WebviewWindow> {
    let window = WebviewWindowBuilder::new(app, label, WebviewUrl::App("index.html".into()))
        .title("Fullhouse box office")
        .disable_drag_drop_handler()
        .initialization_script_for_all_frames(STAYS_OPEN)
        // Its own pages only, whatever a script or a dropped link wants.
        .on_navigation(|url| url.scheme() == "tauri" || url.as_str().starts_with("http://tauri.localhost"));
    match label {
        KIOSK => window
            .fullscreen(true)
            .decorations(false)
            .resizable(false)
            .closable(false)
            .always_on_top(true)
            .visible_on_all_workspaces(true)
            .devtools(false)
            .focused(true)
            .build(),
        COUNTER => window.inner_size(1280.0, 800.0).min_inner_size(1024.0, 700.0).maximized(true).build(),
        _ => window.inner_size(720.0, 680.0).center().build(),
    }
}
