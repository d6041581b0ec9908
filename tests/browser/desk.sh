#!/usr/bin/env bash
# A desk without a monitor: a screen, a window manager, a WebDriver, on a message bus of their own. They end when its
# input does, and say nothing but `ready PORT DISPLAY`.
#
#   dbus-run-session -- tests/browser/desk.sh PORT [WIDTHxHEIGHT [monitors]]
#
# With `monitors` a second one can be plugged in.
set -euo pipefail
port=$1
size=${2:-1280x800}
folder=$(mktemp -d)
children=()
tidy() {
  for child in "${children[@]}"; do kill "$child" 2>/dev/null || true; done
  for child in "${children[@]}"; do wait "$child" 2>/dev/null || true; done
  rm -rf "$folder"
}
trap tidy EXIT

mkfifo "$folder/display"
if [[ ${3:-} ]]; then
  Xorg -displayfd 3 -config "$PWD/tests/browser/two-monitors.conf" -logfile "$folder/xorg.log" -noreset \
    -keeptty -novtswitch -sharevts -nolisten tcp 3>"$folder/display" >/dev/null 2>&1 &
else
  Xvfb -displayfd 3 -screen 0 "${size}x24" -nolisten tcp 3>"$folder/display" >/dev/null 2>&1 &
fi
children+=($!)
read -r -t 20 display <"$folder/display"
export DISPLAY=:$display
if [[ ${3:-} ]]; then xrandr --output DUMMY0 --mode "$size" --pos 0x0; fi
openbox >/dev/null 2>&1 &
children+=($!)
TAURI_AUTOMATION=true TAURI_WEBVIEW_AUTOMATION=true WebKitWebDriver --port="$port" --host=127.0.0.1 >"$folder/driver.log" 2>&1 &
children+=($!)
echo "ready $port $DISPLAY"
cat >/dev/null
