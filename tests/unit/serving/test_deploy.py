"""The examples of deployment and the server that they start say the same."""

from __future__ import annotations

import json
import re
import shlex
from email.message import Message
from pathlib import Path

import pytest

from regard.cli.serve import EngineOptions, Limits, serve
from regard.serving.guard import LARGEST, Refused, check_origin
from regard.serving.http.protocol import MOST
from regard.serving.http.settings import Settings

DEPLOY = Path(__file__).parents[3] / "examples" / "deploy"
DEFAULTS = Settings({}, "", 0)


def text(name: str) -> str:
    return (DEPLOY / name).read_text(encoding="utf-8")


def seconds(pattern: str, name: str) -> int:
    """A number of seconds in a file."""
    [found] = re.findall(pattern, text(name))
    return int(found)


def test_every_option_that_is_given_is_one_of_serve() -> None:
    image = text("Containerfile")
    given = [
        *json.loads(re.findall(r"ENTRYPOINT (.*)", image)[0]),
        *json.loads(re.findall(r"^CMD (.*)", image, re.MULTILINE)[0]),
        *shlex.split(re.findall("ExecStart=(.*)", text("regard.service"))[0]),
    ]
    told = str([serve.__annotations__, Limits.__annotations__, EngineOptions.__annotations__])
    for option in {word for word in given if word.startswith("--")}:
        assert option in told or re.search(rf"'{option[2:]}'", told), option


def test_who_ends_a_server_waits_until_it_has_handed_back_what_is_underway() -> None:
    assert seconds(r"stop_grace_period: (\d+)s", "compose.yaml") > DEFAULTS.drain
    assert seconds(r"TimeoutStopSec=(\d+)", "regard.service") > DEFAULTS.drain
    assert seconds(r"proxy_read_timeout (\d+)s", "nginx.conf") > DEFAULTS.timeout


def test_a_proxy_lets_through_what_a_server_takes() -> None:
    assert seconds(r"client_max_body_size (\d+)m", "nginx.conf") << 20 == LARGEST
    assert seconds(r"LimitNOFILE=(\d+)", "regard.service") > 2 * MOST


def test_a_page_behind_the_proxy_may_ask_its_own_server() -> None:
    """nginx's $host is the name without its port, which an Origin has."""
    [name] = re.findall(r"proxy_set_header Host (\$\w+);", text("nginx.conf"))
    asked = Message()
    asked["Content-Type"] = "application/json"
    asked["Origin"] = "http://127.0.0.1:8080"
    asked["Host"] = {"$http_host": "127.0.0.1:8080", "$host": "127.0.0.1"}[name]
    check_origin(asked)
    asked.replace_header("Origin", "http://elsewhere:8080")
    with pytest.raises(Refused):
        check_origin(asked)


def test_an_image_holds_no_runs_and_no_keys() -> None:
    """There is no list of what to leave out, so that what is copied is named."""
    copied = [word for line in re.findall(r"^COPY (.*)", text("Containerfile"), re.MULTILINE) for word in line.split()]
    assert copied
    assert not {".", "examples", "runs"} & set(copied)


def test_replicas_are_bounded() -> None:
    regard = text("compose.yaml").partition("  proxy:")[0]
    for bound in ("mem_limit", "pids_limit", "read_only: true", "cap_drop: [ALL]", "no-new-privileges:true"):
        assert bound in regard
    for bound in ("MemoryMax", "TasksMax", "NoNewPrivileges=yes", "ProtectSystem=strict"):
        assert bound in text("regard.service")
