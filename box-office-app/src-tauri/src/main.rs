//! The window of a till or kiosk. What matters is in `box-office-app/core`; here are its windows and the commands by
//! which their screens reach it.

#![forbid(unsafe_code)]

mod tokens; // the system's keyring, or a file
mod shell; // what the commands share
mod scanner; // the keys of a counter's window
mod kiosk; // nothing but its PIN ends it
mod windows; // one window: setup, counter or kiosk; and a counter's second one
mod commands; // all that a screen can call

use std::{
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Parser;
use fullhouse_box_office::terminal::Home;
use tauri::Manager;

use crate::shell::Shell;

/// The desktop of a box office: a counter, or a kiosk.
#[derive(Debug, Parser)]
#[command(version)]
struct Options {
    /// Where this terminal keeps who it is [default: the user's data folder].
    #[arg(long, env = "FULLHOUSE_BOX_OFFICE_HOME", value_name = "DIR")]
    home: Option<PathBuf>,
    /// The hub that the enrolment screen proposes.
    #[arg(long, value_name = "URL")]
    hub: Option<String>,
    /// The code that the enrolment screen proposes.
    #[arg(long, value_name = "CODE")]
    code: Option<String>,
}

const WITHOUT_DMABUF: &str = "WEBKIT_DISABLE_DMABUF_RENDERER";

fn main() -> ExitCode {
    let options = Options::parse();
    draw_by_software_without_a_gpu();
    match run(options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("box-office: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let proposed = commands::Proposed { hub: options.hub, code: options.code };
    tauri::Builder::default()
        .setup(move |app| {
            let folder = match options.home {
                Some(folder) => folder,
                None => app.path().app_data_dir()?,
            };
            // What fails here is said in one line: handed back, Tauri panics with it.
            if let Err(error) = open(app, &folder, proposed) {
                eprintln!("box-office: {error}");
                std::process::exit(1);
            }
            Ok(())
        })
        .invoke_handler(tauri::generate_handler![
            commands::about,
            commands::enrol,
            commands::begin,
            commands::enrol_anew,
            commands::ask,
            commands::open_feed,
            commands::close_feed,
            commands::follow_reach,
            commands::sign_in,
            commands::sign_out,
            commands::approve,
            commands::end_approval,
            commands::leave_kiosk,
            commands::serve_again,
            commands::touched,
            commands::follow_visit,
            commands::follow_till,
            commands::lease,
            commands::sell_leased,
            commands::close_lease,
            commands::print_order,
            commands::print_doubts,
            commands::decide_print,
            commands::open_drawer,
            commands::print_receipt,
            commands::print_report,
            commands::print_test_page,
            commands::follow_scanner,
            commands::turn_customer,
            commands::show_customer,
            commands::follow_customer,
        ])
        .run(tauri::generate_context!())?;
    Ok(())
}

fn open(app: &tauri::App, folder: &Path, proposed: commands::Proposed) -> Result<(), Box<dyn std::error::Error>> {
    let home = Home::open(folder)?;
    let shell = tauri::async_runtime::block_on(Shell::open(home, proposed))?;
    app.manage(shell);
    windows::open(app.handle())?;
    Ok(())
}

/// Without a GPU, WebKit's way through DMA buffers costs twice the time a frame (33 ms instead of 16). It reads its
/// environment when it starts, so this starts anew with it.
fn draw_by_software_without_a_gpu() {
    let has_gpu = std::fs::read_dir("/dev/dri").is_ok_and(|mut nodes| {
        nodes.any(|node| node.is_ok_and(|n| n.file_name().to_string_lossy().starts_with("renderD")))
    });
    if has_gpu || std::env::var_os(WITHOUT_DMABUF).is_some() {
        return;
    }
    if let Ok(program) = std::env::current_exe() {
        let error =
            std::process::Command::new(program).args(std::env::args_os().skip(1)).env(WITHOUT_DMABUF, "1").exec();
        eprintln!("box-office: drawing may be slow: {error}");
    }
}
