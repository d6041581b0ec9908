//! One window at a time, by what this machine is; and a counter's second one, turned to its customer. Its label decides which capability file holds for it.

use fullhouse_box_office::terminal::{Record, Role};
use tauri::{AppHandle, Manager, WebviewUrl, WebviewWindow, WebviewWindowBuilder, WindowEvent};

use crate::{kiosk, scanner, shell::Shell};

const SETUP: &str = "setup";
const COUNTER: &str = "counter";
const KIOSK: &str = "kiosk";
const CUSTOMER: &str = "customer";

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
        COUNTER => {
            scanner::listen(&window)?;
            end_with(&window, app.clone());
        }
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
        CUSTOMER => window.title("Fullhouse").inner_size(960.0, 640.0).focused(false).build(),
        COUNTER => window.inner_size(1280.0, 800.0).min_inner_size(1024.0, 700.0).maximized(true).build(),
        _ => window.inner_size(720.0, 680.0).center().build(),
    }
}

/// Opens a counter's second window, or closes it. On another monitor than the counter's it fills that one.
pub fn turn_customer(app: &AppHandle, on: bool) -> tauri::Result<()> {
    let open = app.get_webview_window(CUSTOMER);
    match (open, on) {
        (Some(window), false) => window.destroy(),
        (None, true) => {
            let window = build(app, CUSTOMER)?;
            let own = app.get_webview_window(COUNTER).map(|counter| counter.current_monitor()).transpose()?.flatten();
            let other = app
                .available_monitors()?
                .into_iter()
                .find(|monitor| own.as_ref().is_some_and(|own| own.position() != monitor.position()));
            if let Some(monitor) = other {
                window.set_position(*monitor.position())?;
                window.set_fullscreen(true)?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// The customer's window goes with the counter's: alone it would show the last sale for ever.
fn end_with(counter: &WebviewWindow, app: AppHandle) {
    counter.on_window_event(move |event| {
        if matches!(event, WindowEvent::Destroyed)
            && let Some(customer) = app.get_webview_window(CUSTOMER)
        {
            let _ = customer.destroy(); // it is gone already, then
        }
    });
}
