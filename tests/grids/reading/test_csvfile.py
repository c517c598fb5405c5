"""Users' tables: rows with their places, and mistakes by file and line."""

import pytest

from paradl.grids.reading.csvfile import quote_formula, read_records
from paradl.grids.reading.errors import InputError


@pytest.fixture
def read(tmp_path):
    def write_and_read(text: str):
        path = tmp_path / "table.csv"
        path.write_bytes(text.encode())
        return list(read_records(path, ("a", "b"), ("note",)))

    return write_and_read


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_by_column_with_their_lines(end, read):
    rows = read(end.join(["\ufeffb, a", "", "1,2", " ,", ' 3 ," 4,5"', ""]))
    assert [record for _, record in rows] == [{"b": "1", "a": "2"}, {"b": "3", "a": "4,5"}]
    assert [where.rpartition("table.csv:")[2] for where, _ in rows] == ["3", "5"]


def test_a_field_of_several_lines_counts_them(read):
    rows = read('a,b,note\n1,2,"one\ntwo"\n3,4,\n')
    assert [where.rpartition(":")[2] for where, _ in rows] == ["2", "4"]


BAD = [
    ("", "table.csv:"),
    ("\n ,\n", "table.csv:"),
    ("b\n1", "table.csv:1:"),
    ("a;b\n1;2", "table.csv:1:"),
    ("a,b,nots\n1,2,3", "table.csv:1:"),
    ("a,b,a\n1,2,3", "table.csv:1:"),
    ("a,b\n1,2\n1,2,3", "table.csv:3:"),
    ('a,b\n1,2\n"1,2', "table.csv:3:"),
    (f"a,b\n1,{'x' * 200_000}", "table.csv:2:"),
]


@pytest.mark.parametrize(("text", "message"), BAD)
def test_what_is_wrong_is_told_by_line(text, message, read):
    with pytest.raises(InputError) as error:
        read(text)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 1000


def test_other_columns_where_any_may_stand(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("weather,a,,\nfair,1,,\n")
    assert [record["a"] for _, record in read_records(path, ("a",), None)] == ["1"]
    path.write_text("weather,other\nfair,1\n")
    with pytest.raises(InputError, match=r"csv:1: the column a is missing; required: a"):
        list(read_records(path, ("a",), None))


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "-", "=-5", "--5"]
)
def test_a_formula_is_quoted(text):
    assert quote_formula(text) == f"'{text}"


@pytest.mark.parametrize("text", ["", "-5", "+1e-3", "-inf", "vgg16", "a=1", "data+filter:group=4"])
def test_numbers_and_other_texts_are_left(text):
    assert quote_formula(text) == text
