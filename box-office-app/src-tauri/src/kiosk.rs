//! What keeps a kiosk's window where it is: among the public, whatever is typed, dropped or run in it. Its PIN ends the
//! program ([`crate::commands::leave_kiosk`]); nothing else does. On other monitors than its own there is nothing.
//!
//! Keys are grabbed, so that a window manager's own shortcuts are none here; a system's (Ctrl-Alt-F1) are the system's to
//! take away.

use std::{cell::RefCell, os::unix::process::CommandExt, process::Command, rc::Rc};

use gtk::{
    ApplicationWindow, CssProvider, WindowType,
    gdk::{self, ModifierType, SeatCapabilities, keys::constants as key},
    glib::Propagation,
    prelude::*,
};
use tauri::{AppHandle, Manager, WebviewWindow, WindowEvent};
use webkit2gtk::{FileChooserRequestExt, SettingsExt, WebView, WebViewExt};

use crate::shell::Shell;

/// Alt-F4 and a window manager's cross close no kiosk.
pub fn keep_open(window: &WebviewWindow) -> tauri::Result<()> {
    window.on_window_event(|event| {
        if let WindowEvent::CloseRequested { api, .. } = event {
            api.prevent_close();
        }
    });
    let app = window.app_handle().clone();
    window.with_webview(move |webview| keep_whole(&webview.inner(), app))?;
    let shown = window.clone();
    window.run_on_main_thread(move || {
        if let Ok(window) = shown.gtk_window() {
            take_keys(&window);
            cover_others(&window);
        }
    })
}

/// No dialog of the web view's, no way out of the full screen, and a page that ends begins anew.
fn keep_whole(view: &WebView, app: AppHandle) {
    if let Some(settings) = WebViewExt::settings(view) {
        settings.set_enable_fullscreen(false); // leaving a page's full screen would end the window's
    }
    view.connect_context_menu(|_, _, _, _| true);
    view.connect_print(|_, _| true);
    view.connect_script_dialog(|_, _| true);
    view.connect_run_file_chooser(|_, request| {
        request.cancel();
        true
    });
    // The machine behind the page goes on meanwhile, and tells the new one where it is.
    view.connect_web_process_terminated(|view, _| view.reload());
    // A script that closed it all the same: as if the machine had been switched off and on.
    view.connect_destroy(move |_| {
        if !app.state::<Shell>().is_leaving()
            && let Ok(program) = std::env::current_exe()
        {
            let error = Command::new(program).args(std::env::args_os().skip(1)).exec();
            eprintln!("box-office: the kiosk's window is gone: {error}");
        }
    });
}

/// Whatever a keyboard sends, a page of a kiosk hears what moves through it, and no more.
fn take_keys(window: &ApplicationWindow) {
    window
        .connect_key_press_event(|_, event| if is_harmless(event) { Propagation::Proceed } else { Propagation::Stop });
    grab(window);
    for grabs in
        [window.connect_map_event(|window, _| grab(window)), window.connect_focus_in_event(|window, _| grab(window))]
    {
        let _ = grabs; // for as long as there is the window
    }
}

fn grab(window: &ApplicationWindow) -> Propagation {
    if let (Some(shown), Some(seat)) = (window.window(), gdk::Display::default().and_then(|one| one.default_seat())) {
        // One that is not on the screen yet can't; it is asked again once it is.
        let _ = seat.grab(&shown, SeatCapabilities::KEYBOARD, true, None, None, None);
    }
    Propagation::Proceed
}

/// What stands on monitors that the kiosk does not fill.
const COVER: &str = "window { background: #14110f; }";

/// On another monitor a desktop's menu would be a way out, and another program a way around. Those that are plugged in
/// later are covered too.
fn cover_others(kiosk: &ApplicationWindow) {
    let (Some(display), Some(screen)) = (gdk::Display::default(), GtkWindowExt::screen(kiosk)) else { return };
    let covers: Rc<RefCell<Vec<gtk::Window>>> = Rc::default();
    let kiosk_window = kiosk.clone();
    let cover = Rc::new(move || {
        let Some(own) = kiosk_window.window().and_then(|window| display.monitor_at_window(&window)) else { return };
        let is_other = |at: &i32| display.monitor(*at).is_some_and(|monitor| monitor != own);
        let others: Vec<i32> = (0..display.n_monitors()).filter(is_other).collect();
        let mut covers = covers.borrow_mut();
        while covers.len() < others.len() {
            covers.push(blank());
        }
        for (at, cover) in covers.iter().enumerate() {
            match others.get(at) {
                Some(monitor) => fill(cover, &display, *monitor),
                None => cover.hide(), // it was unplugged
            }
        }
    });
    cover();
    let (shown, moved, plugged) = (cover.clone(), cover.clone(), cover);
    kiosk.connect_map_event(move |_, _| {
        shown();
        Propagation::Proceed
    });
    kiosk.connect_configure_event(move |_, _| {
        moved();
        false
    });
    screen.connect_monitors_changed(move |_| plugged());
}

/// A window that shows nothing and does nothing, and that no window manager moves, closes or has a menu for.
fn blank() -> gtk::Window {
    let cover = gtk::Window::new(WindowType::Popup);
    cover.set_decorated(false);
    cover.set_accept_focus(false);
    cover.connect_delete_event(|_, _| Propagation::Stop);
    let style = CssProvider::new();
    if style.load_from_data(COVER.as_bytes()).is_ok() {
        cover.style_context().add_provider(&style, gtk::STYLE_PROVIDER_PRIORITY_APPLICATION);
    }
    cover
}

fn fill(cover: &gtk::Window, display: &gdk::Display, monitor: i32) {
    let Some(place) = display.monitor(monitor).map(|monitor| monitor.geometry()) else { return };
    cover.move_(place.x(), place.y());
    cover.resize(place.width(), place.height());
    cover.show();
}

/// What a keypad for blind or unsteady hands sends: to the next control, to the one before, "this one".
fn is_harmless(event: &gdk::EventKey) -> bool {
    let with = event.state() & (ModifierType::CONTROL_MASK | ModifierType::MOD1_MASK | ModifierType::SUPER_MASK);
    let moves = [
        key::Tab,
        key::ISO_Left_Tab,
        key::Return,
        key::KP_Enter,
        key::space,
        key::Up,
        key::Down,
        key::Left,
        key::Right,
    ];
    with.is_empty() && moves.contains(&event.keyval())
}
