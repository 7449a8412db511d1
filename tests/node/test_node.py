#!/usr/bin/env python3
"""A node as its clients and its machine see it: processes, crashes, reloads, ends. Prints TAP.

   test_node.py BUILD-DIRECTORY
"""
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback

BUILD = pathlib.Path(sys.argv[1]).resolve()
TRY_CORE = BUILD / "tests/node/try_core"
CLOISTER = BUILD / "cloister"
WAIT = 60  # seconds that a busy machine may take for anything


def until(what, condition):
    end = time.monotonic() + WAIT
    while time.monotonic() < end:
        got = condition()
        if got:
            return got
        time.sleep(0.02)
    raise AssertionError(f"waited {WAIT} s for {what}")


class Node:
    """A state directory with a node on it, and its clients."""

    def __init__(self, *options, env=None, start=True):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="node-"))
        self.state = self.dir / "state"
        self.config = self.dir / "cloister.toml"
        self.config.write_text("")
        self.config.chmod(0o600)
        self.options, self.env = options, env or {}
        self.tokens = {}
        self.proc = None
        if start:
            self.start()

    def command(self, *words, check=True):
        done = subprocess.run([CLOISTER, *words, "--state-dir", self.state], capture_output=True, text=True,
                              env=self.environment(), timeout=WAIT)
        assert not check or done.returncode == 0, done.stderr
        return done

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": str(self.dir), "CLOISTER_LIBEXECDIR": str(BUILD), **self.env}

    def token(self, name, tenant="acme", *more):
        self.tokens[name] = self.command("token", "add", name, "--tenant", tenant, *more).stdout.strip()
        return self.tokens[name]

    def start(self, wait=True):
        self.log = open(self.dir / "log", "ab")
        self.log_from = self.log.tell()
        self.proc = subprocess.Popen(
            [CLOISTER, "serve", f"--config={self.config}", f"--state-dir={self.state}",
             "--serve-listen=127.0.0.1:0 unix", *self.options],
            stderr=self.log, stdin=subprocess.DEVNULL, env=self.environment())
        if wait:
            self.port = until("the node to serve", self.find_port)

    def text(self):
        return (self.dir / "log").read_text()

    def find_port(self):
        assert self.proc.poll() is None, self.text()
        for line in reversed(self.text()[self.log_from:].splitlines()):
            if "front serves on 127.0.0.1:" in line:
                return int(line.split("127.0.0.1:")[1].split()[0])
        return None

    def children(self):
        """name -> pids below the supervisor"""
        found, level = {}, [self.proc.pid]
        while level:
            parent = level.pop()
            try:
                kids = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
            except OSError:
                continue
            for kid in kids:
                try:
                    words = pathlib.Path(f"/proc/{kid}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                found.setdefault(words[0].decode(), []).append(int(kid))
                level.append(int(kid))
        return found

    def ask(self, method, path, body=None, token="ci", timeout=WAIT):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            headers = {"Authorization": f"Bearer {self.tokens.get(token, token)}"} if token else {}
            if body is not None:
                headers["Content-Type"] = "application/json"
            c.request(method, path, json.dumps(body) if body is not None else None, headers)
            r = c.getresponse()
            return r.status, json.loads(r.read() or b"null")
        finally:
            c.close()

    def call(self, tool, session="s", token="ci", **arguments):
        return self.ask("POST", f"/api/v1/sessions/{session}/tools/{tool}/execute", arguments, token)

    def serving(self):
        try:
            return self.ask("GET", "/readyz", token=None, timeout=5)[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def stop(self, signo=signal.SIGTERM):
        if self.proc and self.proc.poll() is None:
            self.proc.send_signal(signo)
            self.proc.wait(WAIT)
        return self.proc.returncode if self.proc else None

    def done(self):
        if self.proc and self.proc.poll() is None:
            self.proc.kill()
            self.proc.wait(WAIT)
        shutil.rmtree(self.dir, ignore_errors=True)


class Writers:
    """Clients that write until they are stopped; what was acknowledged is remembered."""

    def __init__(self, node, n=4, refused=()):
        self.node, self.stopped, self.kept, self.failed, self.wrong = node, False, {}, 0, []
        self.may = {503, *refused}
        self.threads = [threading.Thread(target=self.run, args=(i,)) for i in range(n)]
        for t in self.threads:
            t.start()

    def run(self, who):
        i = 0
        while not self.stopped:
            i += 1
            name = f"w{who}-{i}"
            try:
                status, answer = self.node.call("file_write", path=name, content=f"{name} content")
                if status == 200 and answer["executed"]:
                    self.kept[name] = f"{name} content"
                    continue
                if status not in self.may:
                    self.wrong.append((status, answer))
            except (OSError, http.client.HTTPException):
                pass
            self.failed += 1
            time.sleep(0.01)

    def stop(self):
        self.stopped = True
        for t in self.threads:
            t.join()
        assert not self.wrong, self.wrong[:3]

    def enough(self, n):
        have = len(self.kept)
        until("more writes", lambda: len(self.kept) >= have + n)


def ready(*options, **more):
    n = Node(*options, start=False, **more)
    n.token("ci", "acme", "--admin")
    n.token("other", "umbrella")
    n.token("critic", "acme", "--role", "critic")
    n.start()
    assert n.ask("POST", "/api/v1/sessions", {"id": "s"})[0] == 201
    return n


def check_kept(n, kept):
    assert kept, "nothing was written"
    for name, content in kept.items():
        status, answer = n.call("file_read", path=name)
        assert status == 200 and answer["content"] == content, (name, status, answer)


# --- cases -------------------------------------------------------------------------------------


def processes_say_what_they_are():
    n = ready()
    try:
        n.call("file_write", path="a", content="needle")
        assert n.call("file_search", query="needle")[1]["matches_found"] == 1
        kids = n.children()
        assert sorted(kids) == ["cloister-core", "cloister-front", "cloister-journal", "cloister-worker"], kids
        assert pathlib.Path(f"/proc/{n.proc.pid}/cmdline").read_bytes().startswith(b"cloister-supervisor\0serve")
        status = pathlib.Path(f"/proc/{kids['cloister-front'][0]}/status").read_text()
        assert "Seccomp:\t2" in status and "NoNewPrivs:\t1" in status
        if os.geteuid() == 0:
            assert "Uid:\t64631\t64631\t64631\t64631" in status, status
            assert "CapPrm:\t0000000000000000" in status and "Groups:\t \n" in status, status
            core = pathlib.Path(f"/proc/{kids['cloister-core'][0]}/status").read_text()
            assert "CapPrm:\t000000000000001b" in core and "CapBnd:\t0000000000000000" in core, core
    finally:
        n.done()


def crash(which, how="was killed by signal 9"):
    n = ready()
    try:
        w = Writers(n)
        w.enough(20)
        for _ in range(3):
            until(which, lambda: which in n.children())
            os.kill(n.children()[which][0], signal.SIGKILL)
            until("service after the crash", n.serving)
            w.enough(10)
        w.stop()
        check_kept(n, w.kept)
        assert how in n.text() and "is started again" in n.text()
    finally:
        w.stop()
        n.done()


def core_may_crash_under_load():
    crash("cloister-core")


def front_may_crash_under_load():
    crash("cloister-front")


def journal_may_crash_under_load():
    crash("cloister-journal", how="the journal has ended")


def a_worker_may_crash():
    n = ready()
    try:
        n.call("file_write", path="a", content="needle")
        for _ in range(3):
            found = n.call("file_search", query="needle")
            if found[0] == 503:  # its job was handed to the one that was just killed
                found = n.call("file_search", query="needle")
            assert found[1]["matches_found"] == 1, found
            os.kill(n.children()["cloister-worker"][0], signal.SIGKILL)
        assert n.call("file_list")[0] == 200
    finally:
        n.done()


def supervisor_may_crash_and_nothing_outlives_it():
    n = ready()
    try:
        w = Writers(n)
        w.enough(20)
        kids = [pid for pids in n.children().values() for pid in pids]
        n.proc.kill()
        n.proc.wait(WAIT)
        until("its children to end", lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in kids))
        w.stop()
        n.start()
        check_kept(n, w.kept)
    finally:
        w.stop()
        n.done()


def a_reload_loses_no_request():
    n = ready()
    try:
        w = Writers(n, refused=[403])
        w.enough(10)
        before = w.failed
        n.proc.send_signal(signal.SIGHUP)
        until("the second core", lambda: "core 2 serves" in n.text())
        until("the first to retire", lambda: "core 1 has retired" in n.text())
        w.enough(10)
        assert w.failed == before, f"{w.failed - before} requests failed"
        n.config.write_text('profile = "deny-all"\n')
        n.proc.send_signal(signal.SIGHUP)
        until("the new core", lambda: "core 3 serves" in n.text())
        time.sleep(0.2)
        status, answer = n.call("file_read", path="x")
        assert status == 403 and answer["error"]["code"] == "denied", answer
        w.stopped = True
        until("the second to retire", lambda: "core 2 has retired" in n.text())
        n.config.write_text("")
        n.proc.send_signal(signal.SIGHUP)
        until("the last core", lambda: "core 4 serves" in n.text())
        check_kept(n, w.kept)
    finally:
        w.stop()
        n.done()


def a_reload_of_nonsense_changes_nothing():
    n = ready()
    try:
        n.call("file_write", path="a", content="x")
        n.config.write_text('profile = "nonsense"\n')
        n.proc.send_signal(signal.SIGHUP)
        until("the refusal", lambda: "the one before goes on serving" in n.text())
        assert "cloister.toml, line 1: profile: 'nonsense' is none of the words" in n.text()
        assert n.call("file_read", path="a")[0] == 200
    finally:
        n.done()


def a_broken_configuration_does_not_start():
    n = Node(start=False)
    try:
        n.config.write_text("quota = 1\n")
        n.start(wait=False)
        assert n.proc.wait(WAIT) == 2
        assert "quota is a table" in n.text(), n.text()
    finally:
        n.done()


def it_ends_in_order():
    n = ready()
    try:
        kids = [pid for pids in n.children().values() for pid in pids]
        w = Writers(n)
        w.enough(10)
        assert n.stop() == 0, n.text()
        w.stop()
        assert not any(pathlib.Path(f"/proc/{p}").exists() for p in kids)
        n.start()
        check_kept(n, w.kept)
    finally:
        w.stop()
        n.done()


def a_removed_token_counts_no_more():
    n = ready()
    try:
        assert n.ask("GET", "/api/v1/whoami")[1]["tenant"] == "acme"
        assert n.ask("GET", "/api/v1/whoami", token="nobody")[0] == 401
        assert n.ask("GET", "/api/v1/whoami", token=None)[0] == 401
        n.command("token", "remove", "ci")
        until("the token to be forgotten", lambda: n.ask("GET", "/api/v1/whoami")[0] == 401)
    finally:
        n.done()


def sessions_of_others_do_not_exist():
    n = ready()
    try:
        n.call("file_write", path="secret", content="x")
        call_id = n.call("file_read", path="secret")[1]["call_id"]
        for method, path, body in [
            ("GET", "/api/v1/sessions/{}", None),
            ("DELETE", "/api/v1/sessions/{}", None),
            ("POST", "/api/v1/sessions/{}/extend", {"ttl_seconds": 5}),
            ("POST", "/api/v1/sessions/{}/tools/file_read/execute", {"path": "secret"}),
            ("POST", "/api/v1/sessions/{}/tools/file_write/execute", {"path": "secret", "content": "y"}),
            ("GET", "/api/v1/sessions/{}/files/secret", None),
            ("GET", "/api/v1/sessions/{}/events", None),
        ]:
            theirs = n.ask(method, path.format("s"), body, "other")
            absent = n.ask(method, path.format("t"), body, "other")
            assert theirs[0] == absent[0] == 404, (path, theirs, absent)
            same = json.dumps(absent[1]).replace("'t'", "'s'")
            assert json.loads(same) == theirs[1], (path, theirs, absent)
        assert n.ask("GET", f"/api/v1/calls/{call_id}")[0] == 200
        assert n.ask("GET", f"/api/v1/calls/{call_id}", token="other")[0] == 404
        assert n.ask("GET", "/api/v1/sessions", token="other")[1]["sessions"] == []
        assert n.call("file_read", path="secret")[1]["content"] == "x"
    finally:
        n.done()


def the_lesser_role_counts():
    n = ready()
    try:
        n.call("file_write", path="a", content="x")
        assert n.call("file_read", token="critic", path="a")[0] == 200
        status, answer = n.call("file_write", token="critic", path="a", content="y")
        assert status == 403 and answer["error"]["code"] == "denied", answer
        assert n.ask("GET", "/metrics", token="critic")[0] == 403
        assert n.ask("POST", "/api/v1/sessions", {"id": "c", "role": "critic"})[0] == 201
        assert n.call("file_write", session="c", path="a", content="y")[0] == 403
        made = n.ask("POST", "/api/v1/sessions", {"id": "d", "role": "developer"}, "critic")
        assert made[1]["role"] == "critic", made
        assert n.call("file_read", path="a")[1]["content"] == "x"
    finally:
        n.done()


def half_an_upload_is_nothing():
    n = ready()
    try:
        c = http.client.HTTPConnection("127.0.0.1", n.port, timeout=WAIT)
        c.putrequest("PUT", "/api/v1/sessions/s/files/half")
        c.putheader("Authorization", "Bearer " + n.tokens["ci"])
        c.putheader("Content-Length", "1000000")
        c.endheaders()
        c.send(b"x" * 500000)
        time.sleep(0.3)
        c.close()
        time.sleep(0.3)
        assert n.call("file_info", path="half")[1]["error"]["code"] == "not_found"
        assert n.serving()
    finally:
        n.done()


def an_older_landlock_serves():
    for abi in (2, 3, 4, 5):
        n = ready(env={"CLOISTER_LANDLOCK_ABI": str(abi)})
        try:
            n.call("file_write", path="a", content="needle")
            assert n.call("file_search", query="needle")[1]["matches_found"] == 1
            assert f"Landlock ABI {abi})" in n.text(), n.text()
        finally:
            n.done()


def without_landlock_it_does_not_start():
    n = Node(env={"CLOISTER_LANDLOCK_ABI": "1"}, start=False)
    try:
        n.start(wait=False)
        assert n.proc.wait(WAIT) == 8
        assert "no Landlock of ABI 2" in n.text()
    finally:
        n.done()
    n = ready("--single-user", env={"CLOISTER_LANDLOCK_ABI": "1"})
    try:
        assert "no Landlock" in n.call("file_list")[1]["weaker"]
    finally:
        n.done()


def taken_over(what):
    """A node whose core was replaced by one that does `what`."""
    n = Node("--serve-workers=3", env={"CLOISTER_TRY": what}, start=False)
    programs = n.dir / "programs"
    programs.mkdir()
    for name in ["cloister-supervisor", "cloister-front", "cloister-journal", "cloister-worker"]:
        shutil.copy(BUILD / name, programs / name)
    shutil.copy(TRY_CORE, programs / "cloister-core")
    n.env["CLOISTER_LIBEXECDIR"] = str(programs)
    n.start()
    return n


def a_core_that_misbehaves_is_ended_and_its_node_lives():
    for what in ["garbage to leases", "garbage to control", "no channel", "wrong message", "does not read"]:
        n = taken_over(what)
        try:
            until(what, lambda: n.text().count("core (pid") >= 3)
            assert n.proc.poll() is None
            assert n.ask("GET", "/healthz", token=None)[0] == 200
            times = [line.split()[0] for line in n.text().splitlines() if "core (pid" in line]
            assert times == sorted(times)
            assert n.stop() == 0, n.text()
        finally:
            n.done()


def a_core_gets_no_more_workers_than_its_supervisor_allows():
    n = taken_over("many workers")
    try:
        until("the refusals", lambda: "TRY: 5 of 8 workers were refused" in n.text())
        assert len(n.children()["cloister-worker"]) <= 3
        workers = n.children()["cloister-worker"]
        os.kill(n.children()["cloister-core"][0], signal.SIGKILL)
        until("its workers to end", lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in workers))
    finally:
        n.done()


CASES = [a_core_that_misbehaves_is_ended_and_its_node_lives, a_core_gets_no_more_workers_than_its_supervisor_allows,
         processes_say_what_they_are, core_may_crash_under_load, front_may_crash_under_load, journal_may_crash_under_load, a_worker_may_crash,
         supervisor_may_crash_and_nothing_outlives_it, a_reload_loses_no_request, a_reload_of_nonsense_changes_nothing,
         a_broken_configuration_does_not_start, it_ends_in_order, a_removed_token_counts_no_more,
         sessions_of_others_do_not_exist, the_lesser_role_counts, half_an_upload_is_nothing, an_older_landlock_serves,
         without_landlock_it_does_not_start]


def main():
    wanted = sys.argv[2:]
    cases = [c for c in CASES if not wanted or c.__name__ in wanted]
    print(f"1..{len(cases)}", flush=True)
    failed = 0
    for i, case in enumerate(cases, 1):
        try:
            case()
            print(f"ok {i} - {case.__name__}", flush=True)
        except Exception:
            failed += 1
            print(f"not ok {i} - {case.__name__}", flush=True)
            for line in traceback.format_exc().splitlines():
                print("# " + line, flush=True)
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
