import json

from sweep.cli.commands import spell_out


def test_short_forms_are_spelt_out_but_behind_two_dashes():
    assert spell_out(["best", "--json", "x"]) == ["best", "--format", "json", "x"]
    assert spell_out(["best", "--", "--json"]) == ["best", "--", "--json"]
    assert spell_out([]) == []


def test_json_is_a_format_of_every_command_that_has_any(paradl):
    code, out, _ = paradl("systems", "--json")
    assert code == 0
    assert out == paradl("systems", "--format", "json")[1]
    assert json.loads(out)
