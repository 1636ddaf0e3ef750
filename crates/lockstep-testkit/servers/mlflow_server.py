"""A real MLflow server that ends with its standard input.

mlflow_server.py FOLDER PORT [NAME=VALUE ...]: the data base and the files are in FOLDER; PORT 0 is any that is free.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request

from ports import keep, reserve

folder, port, variables = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
if port == 0:
    port = reserve()
else:
    keep(port)
environment = dict(os.environ)
# Nothing but what it needs: no jobs, no telemetry.
environment.update(
    MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false",
    MLFLOW_DISABLE_TELEMETRY="true",
    DO_NOT_TRACK="true",
)
environment.update(variable.split("=", 1) for variable in variables)
os.makedirs(folder, exist_ok=True)
server = subprocess.Popen(
    [
        sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port),
        "--backend-store-uri", f"sqlite:///{folder}/mlflow.db",
        "--artifacts-destination", f"{folder}/artifacts", "--workers", "1",
    ],
    env=environment, cwd=folder, start_new_session=True,
    stdin=subprocess.DEVNULL, stdout=sys.stderr, stderr=sys.stderr,
)
address = f"http://127.0.0.1:{port}"
deadline = time.time() + 180
try:
    while True:
        try:
            if urllib.request.urlopen(address + "/health", timeout=5).read() == b"OK":
                break
        except OSError:
            pass
        if server.poll() is not None or time.time() > deadline:
            sys.exit("mlflow server did not start")
        time.sleep(0.2)
    print(json.dumps({"endpoint": address, "port": str(port)}), flush=True)
    sys.stdin.read()
finally:
    # At once, as a machine that fails: its clients must bear that.
    os.killpg(server.pid, signal.SIGKILL)
    server.wait()
