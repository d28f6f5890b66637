"""Zeroes the GPU code of all architectures but one in a library, in place, so that it packs small.

Usage: keep_arch.py LIBRARY ARCHITECTURE

The library embeds "fat binaries": a header (magic number, version, size of the header, size of what
follows) and then entries, each a kind (1: PTX, 2: machine code), its own header's size, its payload's
size and, 28 bytes in, the architecture. Headers stay, so that the loader finds its way; payloads go.
"""
import mmap
import struct
import sys

MAGIC = struct.pack("<I", 0xBA55ED50)
MACHINE_CODE = 2


def entries(data):
    """Place, header size, payload size, kind and architecture of every entry."""
    at = data.find(MAGIC)
    while at >= 0:
        version, header, size = struct.unpack_from("<HHQ", data, at + 4)
        # The magic number may also occur by chance.
        if version == 1 and header == 16 and at + header + size <= len(data):
            place, end = at + header, at + header + size
            while place < end:
                kind, _, entry_header, payload = struct.unpack_from("<HHIQ", data, place)
                (architecture,) = struct.unpack_from("<I", data, place + 28)
                yield place, entry_header, payload, kind, architecture
                place += entry_header + payload
            at = data.find(MAGIC, end)
        else:
            at = data.find(MAGIC, at + 4)


def main():
    path, wanted = sys.argv[1], int(sys.argv[2])
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as data:
        kept = 0
        for place, header, payload, kind, architecture in list(entries(data)):
            if kind == MACHINE_CODE and architecture == wanted:
                kept += 1
            else:
                data[place + header : place + header + payload] = bytes(payload)
        if not kept:
            sys.exit(f"{path}: no machine code for architecture {wanted}")
    print(f"kept {kept} pieces of machine code for architecture {wanted}")


if __name__ == "__main__":
    main()
