# SPDX-License-Identifier: BSD-2-Clause
"""Connects to an endpoint as a process that was given only the name of this endpoint, claims the
address of another endpoint, and sends tagged messages: impostor.py NAME NAME-OF-THE-OTHER stay|end

The names are in hexadecimal digits; the secret in the second name is not used. The handshake and the
frames are described in channel/src/net (secret.rs, handshake.rs, frame.rs). With `stay` the
connection stays open until standard input ends, and then more messages are sent."""

import contextlib
import hashlib
import hmac
import os
import socket
import struct
import sys

MAGIC = 0x7463_616D_6E65_0005
DIALER, ACCEPTOR = b"\x00", b"\x01"
PROOF, MASK, CLAIM = b"\x00", b"\x01", b"\x02"
INLINE, TAGGED = 1, 1


def mac(key, *parts):
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def secret_of(number):
    return hashlib.sha256(b"tcam endpoint\0" + number).digest()


def address_of(name):
    """Returns the IPv4 address, as a number, and the port."""
    port, ip = struct.unpack(">HI", name[2:8])
    return ip, port


def packed(name):
    ip, port = address_of(name)
    return 1 << 63 | ip << 16 | port


def message(kind, fields):
    return struct.pack("=HB", 1 + len(fields), kind) + fields


def read(stream, wanted):
    """Reads handshake messages up to one of this kind. Returns its fields."""
    while True:
        (length,) = struct.unpack("=H", stream.read(2))
        kind, fields = stream.read(1)[0], stream.read(length - 1)
        if kind == wanted:
            return fields


def main():
    name, other = (bytes.fromhex(word) for word in sys.argv[1:3])
    ip, port = address_of(name)
    connection = socket.create_connection((socket.inet_ntoa(struct.pack(">I", ip)), port), timeout=20)
    stream = connection.makefile("rb")
    nonce = os.urandom(16)
    connection.sendall(message(1, struct.pack("=Q", MAGIC) + nonce))
    session = mac(secret_of(name[8:]), nonce, read(stream, 1)[8:])
    masked = int.from_bytes(os.urandom(8), "little")
    who = address_of(other)[1] << 48 | int.from_bytes(os.urandom(4), "little") | 1
    hello = struct.pack("=QQQQHBBQ", who, packed(other), packed(name), masked, 0, 0, 0, 0)
    hello += mac(secret_of(os.urandom(8)), mac(session, DIALER, CLAIM, hello))
    connection.sendall(message(2, hello + mac(session, DIALER, PROOF, hello)))
    theirs = read(stream, 2)
    masked, number = struct.unpack("=QH", theirs[24:34])
    token = masked ^ int.from_bytes(mac(session, ACCEPTOR, MASK)[:8], "little")
    forged = b"\xee" * 64
    first = INLINE | TAGGED << 8 | number << 16
    words = struct.pack("=5Q", first, 7, 0, len(forged), 0)
    frame = struct.pack("=IIQII", 0, len(forged), token, 0, 0) + words + forged
    connection.sendall(3 * frame)
    print("sent", flush=True)
    if sys.argv[3] == "stay":
        sys.stdin.read()
        with contextlib.suppress(OSError):
            connection.sendall(3 * frame)


if __name__ == "__main__":
    main()
