//! Names the shell's commands to Tauri, so that a window may call only those that its capability file lists.

fn main() {
    let commands = &[
        "about",
        "enrol",
        "begin",
        "enrol_anew",
        "ask",
        "open_feed",
        "close_feed",
        "follow_reach",
        "sign_in",
        "sign_out",
        "approve",
        "end_approval",
        "leave_kiosk",
        "serve_again",
        "touched",
        "follow_visit",
        "follow_till",
        "lease",
        "sell_leased",
        "close_lease",
        "print_order",
        "print_doubts",
        "decide_print",
        "open_drawer",
        "print_receipt",
        "print_report",
        "print_test_page",
        "follow_scanner",
        "turn_customer",
        "show_customer",
        "follow_customer",
    ];
    let manifest = tauri_build::AppManifest::new().commands(commands);
    tauri_build::try_build(tauri_build::Attributes::new().app_manifest(manifest))
        .unwrap_or_else(|error| panic!("{error:#}"));
}
