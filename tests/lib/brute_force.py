# SPDX-License-Identifier: BSD-2-Clause
"""A brute-force model of the device that fi_tcam(7) describes: two lists in MPI order.
tests/gate/brute.py plays the operations of operations.csv to it."""

import collections

TAKES = ("claim", "discard")
COUNTS = [
    "inserts", "searches", "table_matches", "host_matches", "misses", "table_kept", "host_kept",
    "spills", "promotions", "onloads", "held_back", "table_cancels", "host_cancels", "table_occupancy",
    "host_occupancy", "table_high_water", "host_high_water", "high_water",
]  # fmt: skip


class Element:
    """A posted receive or an unexpected message."""

    def __init__(self, number, row, refused=""):
        # `refused`: the reason for which the device refuses the element; empty if it takes it.
        self.number, self.refused, self.in_table = number, refused, False
        self.bits = int(row["match_bits"], 16)
        self.ignore = int(row["ignore_bits"] or "0", 16)
        self.source, self.source_rank = row["source"], row["source_rank"]
        self.bytes = int(row["bytes"] or 0)
        self.kind = row["kind"]
        # Bytes left in a buffer of several messages, and the minimum that keeps it posted.
        self.left = self.least = None
        if row["multi_used"]:
            self.left = self.bytes - int(row["multi_used"])
            self.least = max(int(row["multi_least"]), 1)

    def matches(self, other):
        same = (self.bits ^ other.bits) & ~(self.ignore | other.ignore) == 0
        return same and (self.source == other.source or "" in (self.source, other.source))


class Queue:
    """One queue, oldest element first, with a table of up to `entries` elements."""

    def __init__(self, entries, model):
        self.entries, self.model = entries, model
        self.elements, self.tabled = [], 0
        # `software`: with the model `sticky`, the table is no longer used. `holding`: with
        # `flow-control`, a receive is held back.
        self.software = self.holding = False
        self.counts, self.reasons = collections.Counter(), collections.Counter()
        self.depth, self.host_entries = collections.Counter(), 0
        # Entries that each search on the host compares.
        self.host_searches = []

    def on_host(self):
        return len(self.elements) - self.tabled

    def promotes(self):
        return self.model in ("spill", "flow-control")

    def controls_flow(self):
        return self.model == "flow-control" and self.entries > 0

    def blocked(self, element):
        """Returns why an element does not enter the table; None if it does."""
        full = self.tabled == self.entries
        if self.entries == 0:
            return "disabled"
        if element.refused:
            return element.refused
        if self.model == "sticky" and self.software:
            return "sticky"
        if full:
            return "table_full"
        if self.model == "prefix" and self.on_host():
            return "order"
        if self.promotes() and any(not of.in_table and not of.refused for of in self.elements):
            return "order"
        return None

    def ask_room(self, element):
        """Returns true if a receive may be posted. Of several refusals in a row, counts only the
        first."""
        room = self.blocked(element) is None
        if not room and not self.holding:
            self.counts["held_back"] += 1
        self.holding = not room
        return room

    def insert(self, element):
        self.counts["inserts"] += 1
        why = self.blocked(element)
        self.elements.append(element)
        if why is None:
            self.enter(element)
        else:
            self.counts["spills"] += 1
            self.reasons[why] += 1
            self.counts["spills", element.kind] += 1
            # An element that the device refuses does not end the use of the table (`sticky`), and
            # is not held back. Without a table no element is refused.
            element.refused = element.refused if why == element.refused else ""
            if not element.refused and self.model == "sticky" and self.entries > 0:
                self.software = True
            if self.controls_flow() and not element.refused:
                self.counts["held_back"] += not self.holding
                self.holding = False
        for name, now in (("host_high_water", self.on_host()), ("high_water", len(self.elements))):
            self.counts[name] = max(self.counts[name], now)

    def enter(self, element):
        element.in_table = True
        self.tabled += 1
        self.counts["table_high_water"] = max(self.counts["table_high_water"], self.tabled)

    def leave(self, takes_along):
        """Ends the use of the table (`sticky`): new elements go to the host. With `takes_along`, the
        elements of the table move to the host as well."""
        if self.entries == 0:
            return
        self.software = True
        if takes_along:
            self.counts["onloads"] += self.tabled
            for element in self.elements:
                element.in_table = False
            self.tabled = 0
            most = max(self.counts["host_high_water"], self.on_host())
            self.counts["host_high_water"] = most

    def find(self, key):
        return next((of for of in self.elements if of.matches(key)), None)

    def search(self, key, counted=True):
        """Returns the oldest element that matches, or None. Counts the search, if `counted` is true,
        and the compared elements: those of the table first, then those of the host."""
        found = self.find(key)
        table = [of for of in self.elements if of.in_table]
        host = [of for of in self.elements if not of.in_table]
        compared = table + host
        depth = compared.index(found) + 1 if found else len(compared)
        if host and not (found in table and found.number < host[0].number):
            passed = next((at for at, of in enumerate(host, 1) if of.matches(key)), len(host))
            self.host_searches.append(passed)
            self.host_entries += passed
        if counted:
            self.counts["searches"] += 1
            self.counts["hit_entries" if found else "miss_entries"] += depth
            where = "table" if found and found.in_table else "host"
            self.counts[f"{where}_matches" if found else "misses"] += 1
        return found

    def remove(self, element):
        self.elements.remove(element)
        self.tabled -= element.in_table
        while self.promotes() and self.tabled < self.entries and self.on_host():
            oldest = next(of for of in self.elements if not of.in_table)
            if oldest.refused:
                break
            self.enter(oldest)
            self.counts["promotions"] += 1

    def keep(self, element):
        self.counts["table_kept" if element.in_table else "host_kept"] += 1

    def cancel(self, number):
        for element in self.elements:
            if element.number == number:
                self.counts["table_cancels" if element.in_table else "host_cancels"] += 1
                self.remove(element)
                return True
        return False

    def told(self):
        """Returns all counts that are compared."""
        occupancy = {"table_occupancy": self.tabled, "host_occupancy": self.on_host()}
        counts = {name: self.counts[name] for name in COUNTS} | occupancy
        reasons = {name: count for name, count in self.reasons.items() if count}
        depth = {name: self.counts[name] for name in ("hit_entries", "miss_entries")}
        return counts | {"block_reasons": reasons, "search_depth": depth}


class Context:
    """A context: its queue of posted receives (PRQ), its queue of unexpected messages (UMQ), and
    its counts. `entries` is a pair if their tables differ. The device refuses receives of the kinds
    in `refuse`, and those shorter than `below` bytes. `tag_bits` are the bits that a receive from any
    tag ignores."""

    def __init__(self, entries, model, refuse, below=0, tag_bits=(1 << 64) - 1):
        prq, umq = entries if isinstance(entries, tuple) else (entries, entries)
        self.prq, self.umq = Queue(prq, model), Queue(umq, model)
        self.refuse, self.below, self.tag_bits = refuse, below, tag_bits
        self.posted = self.arrived = self.peeks = self.taken = 0
        self.has_left = False
        # Operations for which the row and the brute force differ.
        self.differ = []

    def refuses(self, row):
        """Returns the reason for which the device refuses a receive, or an empty string."""
        any_tag = int(row["ignore_bits"] or "0", 16) & self.tag_bits != 0
        found = {"any-source": row["source"] == "", "non-contiguous": row["contiguous"] == "false", "any-tag": any_tag}
        if any(found[kind] for kind in self.refuse):
            return "refused"
        return "short" if int(row["bytes"] or 0) < self.below else ""

    def play(self, row):
        what, found, number = row["operation"], None, row["number"]
        if what in ("post", "post anyway", "held"):
            receive = Element(self.posted, row, self.refuses(row))
            waits = self.umq.find(receive) is None and not receive.refused
            if what != "post anyway" and waits and self.prq.controls_flow():
                self.prq.ask_room(receive)
            if what != "held":
                found = self.post(receive)
        elif what == "arrive":
            found = self.arrive(Element(self.arrived, row))
        elif what == "peek":
            self.peeks += 1
            found = self.umq.search(Element(None, row), counted=False)
        elif what in TAKES:
            self.peeks += 1
            key = Element(None, row)
            found = self.umq.search(key, counted=self.umq.find(key) is not None)
            if found:
                self.taken += 1
                self.umq.remove(found)
        elif what in ("cancel", "drop"):
            removed = (self.prq if what == "cancel" else self.umq).cancel(int(number))
            self.expect(row, "found", "true" if removed else "false")
        if what in ("post", "post anyway", "arrive"):
            mine = self.posted if what != "arrive" else self.arrived
            self.expect(row, "number", str(mine - 1))
        if what in ("peek", *TAKES, "arrive", "post", "post anyway"):
            met = "number" if what in ("peek", *TAKES) else "partner"
            self.expect(row, met, str(found.number) if found else "")
            self.expect(row, "found", "true" if found else "false")

    def leave(self):
        """If one queue no longer uses its table, both queues leave their tables. Unexpected
        messages move to the host, receives stay in the table."""
        if self.has_left or not (self.prq.software or self.umq.software):
            return
        self.has_left = True
        self.prq.leave(takes_along=False)
        self.umq.leave(takes_along=True)

    def expect(self, row, name, value):
        if row[name] != value:
            self.differ.append(f"{name} is {value} in {row}")

    def post(self, receive):
        self.posted += 1
        found = self.umq.search(receive)
        if found:
            self.umq.remove(found)
        else:
            self.prq.insert(receive)
            self.leave()
        return found

    def arrive(self, message):
        self.arrived += 1
        found = self.prq.search(message)
        if found is None:
            self.umq.insert(message)
            self.leave()
            return None
        if found.left is not None:
            found.left = max(found.left - message.bytes, 0)
        if found.left is None or found.left < found.least:
            self.prq.remove(found)
        else:
            self.prq.keep(found)
        return found


def brute_force(operations, entries, model, refuse=(), **limits):
    """Plays the operations of every rank. Returns the contexts by (rank, context). `limits`: of
    `Context`."""
    contexts = {}
    for row in operations:
        key = int(row["rank"]), row["context"]
        if key not in contexts:
            contexts[key] = Context(entries, model, refuse, **limits)
        contexts[key].play(row)
    return contexts
