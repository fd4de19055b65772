"""Serves a directory on a port with wsgidav: with locks, with properties in memory, and without a login."""

import sys

from cheroot.wsgi import Server
from wsgidav.wsgidav_app import WsgiDAVApp

port, directory = int(sys.argv[1]), sys.argv[2]
app = WsgiDAVApp(
    {
        "provider_mapping": {"/": directory},
        "property_manager": True,
        "simple_dc": {"user_mapping": {"*": True}},
        "logging": {"enable": False},
    }
)
Server(("127.0.0.1", port), app).start()
