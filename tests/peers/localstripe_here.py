"""localstripe as `--from-scratch` starts it, but on the loopback only and without its file in /tmp.

localstripe_here.py PORT
"""

import sys

from aiohttp import web
from localstripe.resources import store
from localstripe.server import app

store.dump_to_disk = lambda: None
web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), access_log=None, print=None)
