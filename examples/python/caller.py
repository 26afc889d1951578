#!/usr/bin/env python3
"""Calls one tool through callgate and prints each message of the answer as a line of JSON.

    caller.py SOCKET TOOL [ARGUMENTS] [--session ID] [--call ID]

SOCKET is the path of a role's socket, or fd:N for an inherited descriptor. ARGUMENTS is a JSON
object, sent as it is. Exit status: 0 after a result, 1 after a denial or a failure, 2 otherwise.
Standard library only: this file is all that the wire asks of a caller.
"""

import argparse
import json
import random
import socket
import struct
import sys
import time

MAX_FRAME = 1_048_576


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


def new_call_id():
    """Ordered by time, as the broker likes it. Asking again with the same id is a retry."""
    return (time.time_ns() // 1_000_000) << 20 | random.getrandbits(19)


def messages(sock, request):
    """Every message that answers the request; the last one is final."""
    write_envelope(sock, 1, "tool_request", request)
    while True:
        envelope = read_envelope(sock)
        if envelope is None:
            raise ConnectionError("the broker hung up before the final answer")
        message = envelope["msg"]
        if message["kind"] == "error":
            raise ConnectionError(f"the broker reports {message['body']['code']}")
        if message["kind"] == "tool_response" and envelope["id"] == 1:
            yield message["body"]
            if envelope["final"]:
                return


def main():
    parser = argparse.ArgumentParser(description="Call one tool through callgate.")
    parser.add_argument("socket")
    parser.add_argument("tool")
    parser.add_argument("arguments", nargs="?", default="{}")
    parser.add_argument("--session", default="default")
    parser.add_argument("--call", type=int, default=None)
    options = parser.parse_args()
    call = new_call_id() if options.call is None else options.call
    request = {"session": options.session, "call": call, "tool": options.tool, "arguments": options.arguments}
    body = None
    try:
        with connect(options.socket) as sock:
            for body in messages(sock, request):
                print(json.dumps(body, ensure_ascii=True), flush=True)
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        print(f"caller.py: call {call} in session {options.session}: {error}", file=sys.stderr)
        return 2
    return 0 if body["status"] == "result" else 1


if __name__ == "__main__":
    sys.exit(main())
