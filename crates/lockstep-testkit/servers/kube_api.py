"""Requests to an API server."""

import json
import ssl
import urllib.request

# Seconds between two looks at something that may have changed.
LOOK = 0.1


class Api:
    """Requests to the API server."""

    def __init__(self, server, token, authority):
        self.server, self.token = server, token
        self.context = ssl.create_default_context(cafile=authority)

    def ask(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
            return json.load(answer)

    def tried(self, *words, **more):
        """The same, where it does not matter if the object has gone or the server is away."""
        try:
            return self.ask(*words, **more)
        except (OSError, ValueError):
            return None
