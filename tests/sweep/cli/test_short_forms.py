import json


def test_json_is_a_format_of_every_command_that_has_any(paradl):
    code, out, _ = paradl("systems", "--json")
    assert code == 0
    assert out == paradl("systems", "--format", "json")[1]
    assert json.loads(out)


def test_behind_two_dashes_nothing_is_an_option(paradl):
    code, out, err = paradl("status", "--", "--json")
    assert (code, out) == (2, "")
    assert err.startswith("paradl: --json: ")
