import json


def test_json_is_a_format_of_every_command_that_has_any(cli):
    code, out, _ = cli("list", "systems", "--json")
    assert code == 0
    assert out == cli("list", "systems", "--format", "json")[1]
    assert json.loads(out)


def test_behind_two_dashes_nothing_is_an_option(cli):
    code, out, err = cli("status", "--", "--json")
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --json: ")
