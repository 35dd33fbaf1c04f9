#!/usr/bin/env python3
"""Repairs broken projects with the real program, each in a new directory with a new home.

  tests/scenarios.py UNSTUCK DIR... [--only WORD] [--own | --all] [--sandbox required|best-effort|off] [-v]

Each directory in DIR has setup.sh, check.sh and meta.json (auto_repair, repair_command). A project's unstuck.toml lists the
repairs of all scenarios (--own: only its own), and plausible but wrong ones (wrong.sh). With auto_repair, the check must pass
without human input. Without it, no listed command may run; changed files are reported.
Exits with 1 if fewer than 90% of the repairable projects pass their check, or if any other scenario is not ok.
"""
import argparse, hashlib, json, os, shutil, subprocess, sys, tempfile, time

def toml_text(text):
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")

def tree(folder):
    """Returns the links, directories and file hashes of a directory, except .unstuck and __pycache__."""
    seen = {}
    for base, names, files in os.walk(folder):
        names[:] = sorted(name for name in names if name not in (".unstuck", "__pycache__"))
        for name in sorted(files) + names:
            path = os.path.join(base, name)
            if os.path.islink(path): seen[path] = "-> " + os.readlink(path)
            elif os.path.isfile(path):
                with open(path, "rb") as file: seen[path] = hashlib.sha256(file.read()).hexdigest()
            else: seen[path] = "folder"
    return seen

def script(path, work, env, log):
    with open(log, "wb") as out:
        done = subprocess.run(["timeout", "-k", "2", "90", "bash", path], cwd=work, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=out)
    return done.returncode

def events(work):
    found = []
    runs = os.path.join(work, ".unstuck", "runs")
    for run in sorted(os.listdir(runs)) if os.path.isdir(runs) else []:
        with open(os.path.join(runs, run, "events.jsonl"), encoding="utf-8") as lines: found += [json.loads(line) for line in lines]
    return found

def meta_of(scenario):
    with open(os.path.join(scenario, "meta.json"), encoding="utf-8") as file: return json.load(file)

def tempting(scenario):
    """Returns the commands that look like a repair but are wrong."""
    path = os.path.join(scenario, "wrong.sh")
    if not os.path.exists(path): return []
    with open(path, encoding="utf-8") as file: lines = [line.strip() for line in file]
    return [line for line in lines if line and not line.startswith(("#", "set ", "export ", "exit", "cd "))]

def own_entries(scenario):
    repair = meta_of(scenario).get("repair_command")
    return ([repair] if repair else []) + tempting(scenario)

def one(scenario, entries, args, base):
    meta = meta_of(scenario)
    name = os.path.basename(scenario)
    place = os.path.join(base, name); work = os.path.join(place, "work"); home = os.path.join(place, "state")
    os.makedirs(work); os.makedirs(home)
    env = {**os.environ, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "CARGO_TERM_COLOR": "never", "GIT_TERMINAL_PROMPT": "0",
           "XDG_STATE_HOME": home, "XDG_CONFIG_HOME": home, "npm_config_update_notifier": "false", "npm_config_fund": "false", "npm_config_audit": "false"}
    for unwanted in ("GIT_DIR", "VIRTUAL_ENV", "PYTHONPATH", "NODE_OPTIONS"): env.pop(unwanted, None)
    code = script(os.path.join(scenario, "setup.sh"), work, env, os.path.join(place, "setup.log"))
    if code == 77: return name, meta, None, "not run: the setup requires a program that is not installed"
    if code != 0: return name, meta, "FAIL", "setup failed with exit code %d" % code
    own = own_entries(scenario)
    listed = own + ([] if args.own else [entry for entry in entries if entry not in own])
    with open(os.path.join(work, "unstuck.toml"), "w", encoding="utf-8") as config:
        config.write("[recovery]\ncooldown_seconds = 0\nsandbox = %s\nauto_approve = [\n" % json.dumps(args.sandbox))
        for entry in listed: config.write("  %s,\n" % toml_text(entry))
        config.write("]\n")
    trust = subprocess.run([args.unstuck, "trust"], cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    before = tree(work)
    shutil.copy(os.path.join(scenario, "check.sh"), os.path.join(place, "check.sh"))
    done = subprocess.run(["timeout", "-k", "2", "240", args.unstuck, "exec", "--repair", "auto", "--", "bash", os.path.join(scenario, "check.sh")],
                          cwd=work, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    happened = events(work)
    ran = [event["command"] for event in happened if event["event"] == "recovery_started"]
    told = done.stderr[-1500:] if args.v else done.stderr.strip().splitlines()[-1:]
    if trust.returncode != 0: told = "trust: " + trust.stderr
    if meta["auto_repair"]:
        if done.returncode == 0: result, why = "ok", ran
        else: result, why = "FAIL", "exit %d, ran %s: %s" % (done.returncode, ran, told)
    else:
        changed = {path for path in before.items() ^ tree(work).items()}
        check_alone = sorted({path for path, _ in changed})
        if ran: result, why = "TOUCHED", ran
        elif done.returncode == 0: result, why = "FAIL", "the check passed"
        else: result, why = "ok", "" if not changed else "the check itself wrote %d files" % len(check_alone)
    teardown = os.path.join(scenario, "teardown.sh")
    if os.path.exists(teardown): script(teardown, work, env, os.path.join(place, "teardown.log"))
    if not args.v: shutil.rmtree(place, ignore_errors=True)
    return name, meta, result, why

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("unstuck"); parser.add_argument("dirs", nargs="+"); parser.add_argument("--only", default=""); parser.add_argument("--own", action="store_true")
    parser.add_argument("--sandbox", default="required"); parser.add_argument("-v", action="store_true")
    args = parser.parse_args(); args.unstuck = os.path.abspath(args.unstuck)
    scenarios = [os.path.abspath(os.path.join(folder, name)) for folder in args.dirs for name in sorted(os.listdir(folder)) if os.path.exists(os.path.join(folder, name, "meta.json"))]
    entries = []
    for scenario in scenarios:
        entries += [entry for entry in own_entries(scenario) if entry not in entries]
    base = tempfile.mkdtemp(prefix="unstuck-scenarios-"); os.chmod(base, 0o755)
    counts = {True: [0, 0], False: [0, 0]}; touched = 0
    for scenario in scenarios:
        if args.only not in scenario: continue
        start = time.time()
        name, meta, result, why = one(scenario, entries, args, base)
        print("%-34s %-20s %-7s %5.1f s  %s" % (name, meta["kind"], result or "-", time.time() - start, why), flush=True)
        if result is None: continue
        counts[meta["auto_repair"]][1] += 1; counts[meta["auto_repair"]][0] += result == "ok"; touched += result == "TOUCHED"
    shutil.rmtree(base, ignore_errors=True) if not args.v else print(base)
    (healed, all_), (left, others) = counts[True], counts[False]
    print("repaired %d of %d, left unchanged %d of %d, touched %d" % (healed, all_, left, others, touched))
    return 1 if touched or left < others or healed * 10 < all_ * 9 else 0

if __name__ == "__main__": sys.exit(main())
