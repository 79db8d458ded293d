"""A federation of three sites on one machine, without Flower: each site is a process of its own that keeps its records.

    python examples/three_sites.py

A site runs `tacit agent serve`: records, noise and ledger are in that process, and it answers messages on a socket that
its file permissions protect. The coordinator below holds no training record. `Sockets` stands where Flower stands
between institutions (docs/deploy.md): whatever brings messages there and back can be a transport.
"""

import queue
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from tacit.federation import coordinator, local_demo, wire

PATIENCE = 60.0  # seconds for one answer
LARGEST = 1 << 24  # bytes of an answer


class Sockets:
    """A transport over the sockets of sites on this machine. What is lost, the coordinator asks again."""

    def __init__(self, paths):
        self.paths, self.answers = paths, queue.Queue()

    def send(self, site, header, body):
        threading.Thread(target=self._exchange, args=(site, header, body), daemon=True).start()

    def received(self, seconds):
        try:
            return [self.answers.get(timeout=seconds)]
        except queue.Empty:
            return []

    def absence(self, _site):
        return ""  # nothing is known of a site that does not answer

    def _exchange(self, site, header, body):
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
                stream.settimeout(PATIENCE)
                stream.connect(str(self.paths[site]))
                wire.send(stream, header, body)
                self.answers.put((site, *wire.receive(stream, LARGEST, PATIENCE)))
        except (OSError, wire.Malformed):
            pass


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        local_demo.make(folder)  # as `tacit federate init`, with the hospitals of heart: a folder for each party
        paths = {site: folder / site / "socket" / "agent.sock" for site in local_demo.SITES}
        agent = [sys.executable, "-m", "tacit", "agent"]
        files = [str(folder / site / "agent" / "site.toml") for site in local_demo.SITES]
        for file in files:
            subprocess.run([*agent, "init", file], check=True, stdout=subprocess.DEVNULL)
        services = [subprocess.Popen([*agent, "serve", file], stderr=subprocess.DEVNULL) for file in files]
        try:
            end = time.monotonic() + PATIENCE
            while not all(path.exists() for path in paths.values()) and time.monotonic() < end:
                time.sleep(0.05)
            result = coordinator.train(folder / "coordinator", Sockets(paths))
            print(f"{len(services)} sites, {result.summary['agents']} agents, {result.summary['records']} records")
            print(f"test error  {result.test_error:.1%}")
            print(f"guarantee   {result.guarantee}")
            print("what the hospital of Cleveland has given away, by its own ledger:", flush=True)
            ledger = folder / "ohio" / "agent" / "ledger" / "cleveland.ledger"
            subprocess.run([sys.executable, "-m", "tacit", "ledger", "show", str(ledger)], check=True)
        finally:
            for service in services:
                service.terminate()
                service.wait()


if __name__ == "__main__":
    main()
