#!/usr/bin/env python3
"""Serves two tools, clock_now and word_count, to callgate: one request after the other.

    provider.py SOCKET

SOCKET is the path of the provider role's socket, or fd:N for an inherited descriptor. It runs until
the broker hangs up (exit status 0), or sends what is no frame (2); a service manager starts it again.
Standard library only: this file is all that the wire asks of a provider.
"""

import datetime
import json
import socket
import struct
import sys

MAX_FRAME = 1_048_576


def clock_now(_arguments):
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")


def word_count(arguments):
    text = arguments.get("text")
    if not isinstance(text, str):
        raise ValueError("text must be a string")
    return str(len(text.split()))


TOOLS = {"clock_now": clock_now, "word_count": word_count}


def connect(address):
    if address.startswith("fd:"):
        return socket.socket(fileno=int(address[3:]))
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.connect(address)
    return sock


def receive_exactly(sock, count):
    """`count` bytes, however they are cut on the way; fewer only where the stream ends."""
    data = bytearray()
    while len(data) < count:
        chunk = sock.recv(min(65_536, count - len(data)))
        if not chunk:
            break
        data += chunk
    return bytes(data)


def read_envelope(sock):
    """The next envelope, or None where the broker closed between two."""
    header = receive_exactly(sock, 4)
    if not header:
        return None
    if len(header) < 4:
        raise ConnectionError("the stream ended inside a length")
    (length,) = struct.unpack(">I", header)
    if not 0 < length <= MAX_FRAME:
        raise ValueError(f"a frame of {length} bytes")
    body = receive_exactly(sock, length)
    if len(body) < length:
        raise ConnectionError("the stream ended inside a frame")
    envelope = json.loads(body.decode("utf-8"))
    if not isinstance(envelope, dict) or envelope.get("v") != 1:
        raise ValueError("not an envelope of version 1")
    return envelope


def write_envelope(sock, number, kind, body):
    envelope = {"v": 1, "id": number, "final": True, "msg": {"kind": kind, "body": body}}
    data = json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    if len(data) > MAX_FRAME:
        raise ValueError(f"a frame of {len(data)} bytes")
    sock.sendall(struct.pack(">I", len(data)) + data)


def answer(request):
    """One final response. The broker raises the labels to what its owner configured for the tool."""
    tool = TOOLS.get(request["tool"])
    if tool is None:
        return {"status": "failed", "message": "no such tool"}
    try:
        arguments = json.loads(request["arguments"])
        if not isinstance(arguments, dict):
            raise ValueError("arguments must be an object")
        content = tool(arguments)
    except (ValueError, RecursionError) as error:
        return {"status": "failed", "message": type(error).__name__ + ": " + str(error)[:200]}
    return {"status": "result", "content": content, "class": "public", "untrusted": False, "truncated": False}


def serve(sock):
    while (envelope := read_envelope(sock)) is not None:
        message = envelope["msg"]
        if message["kind"] == "tool_request":
            write_envelope(sock, envelope["id"], "tool_response", answer(message["body"]))
        elif message["kind"] == "error":
            raise ConnectionError(f"the broker reports {message['body']['code']}")


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    try:
        with connect(sys.argv[1]) as sock:
            serve(sock)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        print(f"provider.py: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
