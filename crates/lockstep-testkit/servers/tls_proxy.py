"""A proxy that speaks TLS to its clients and plain TCP to a server: python tls_proxy.py HOST:PORT FOLDER

It prints {"endpoint": "https://127.0.0.1:PORT"} when it listens, and ends with its standard input. The certificate is
for 127.0.0.1 alone; that of its authority is written to FOLDER/ca.pem.
"""

import asyncio
import json
import ssl
import sys

from certificate import certificate


async def pump(reader, writer):
    try:
        while piece := await reader.read(1 << 16):
            writer.write(piece)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


async def main(to, folder):
    host, port = to.rsplit(":", 1)

    async def serve(reader, writer):
        from_server, to_server = await asyncio.open_connection(host, int(port))
        await asyncio.gather(pump(reader, to_server), pump(from_server, writer))

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder))
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    own = server.sockets[0].getsockname()[1]
    print(json.dumps({"endpoint": f"https://127.0.0.1:{own}"}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


asyncio.run(main(*sys.argv[1:]))
