"""Commands of scripts, as bash would expand them."""

from contextlib import suppress

import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.launching.shell import Script


def read(text):
    script = Script()
    script.read(text)
    return script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A=1 B=2\npython $A ${B}x '$A' \"$A $B\"", ["1", "2x", "$A", "1 2"]),
        ("python ${A:-8} ${B-9} ${C:=7} $C", ["8", "9", "7", "7"]),
        (
            "A=(--x # one\n '--y 2')\npython ${A[@]} \"${A[@]}\"",
            ["--x", "--y", "2", "--x", "--y 2"],
        ),
        ("A=(1)\nA+=(2)\nS=a\nS+=b\npython ${A[*]} $S", ["1", "2", "ab"]),
        ("N=4\nG=8\npython $(($N*G)) $((N + G / 3))", ["32", "6"]),
        ('O=" --a 1 \\\n --b"\npython $O \\\n  --c', ["--a", "1", "--b", "--c"]),
        (
            "python $NODES $(hostname -I | head) `date`",
            ["$NODES", "$(hostname -I | head)", "`date`"],
        ),
        ('if [ -z "$N" ]; then N=2; else N=3; fi\npython $N', ["2"]),
        ("S=7\nif [ $S = 7 ]; then L=32; elif [ $S = 13 ]; then L=40; fi\npython $L", ["32"]),
        ("S=13B\ncase $S in\n 7B|8B) L=32 ;;\n 13*) L=40 ;;\n *) L=1 ;;\nesac\npython $L", ["40"]),
        ("N=4\nif [[ $N -gt 2 ]]\nthen\n X=big\nfi\npython $X > log 2>&1", ["big"]),
        ("if [ -d /nowhere ]; then X=1; fi\npython ${X:-0}", ["0"]),
        ("if nvidia-smi | grep -q H100 2> /dev/null; then X=1; fi\npython ${X:-0}", ["0"]),
        (
            "if command -v srun > /dev/null; then X=1; fi; true && Y=2\npython ${X:-0} $Y",
            ["0", "2"],
        ),
        # What depends on more than the script does not hold, behind && and || either.
        ("P=1; [[ $NODES -gt 8 ]] && P=4; test -z $FOO || P=8\npython $P", ["1"]),
        ("N=4; [ $N -gt 2 ] && P=4 || P=1; cd x || exit 1\npython $P", ["4"]),
        ("N=4; if [ $N = 4 ] && [ $N = 5 ]; then P=2; else P=3; fi\npython $P", ["3"]),
        ("N=4; if [ $N = 5 ] || [ $N = 4 ]; then P=2; else P=3; fi\npython $P", ["2"]),
        ("f() {\n local a=$1; shift\n python $a $# \"$@\"\n}\nf 4 x 'y z'", ["4", "2", "x", "y z"]),
        ("function f {\n echo $(( $1 * 2 ))\n}\npython $(f 4) $(expr 3 \\* 2)", ["8", "6"]),
        ('O=""\nadd() { O="$O $*"; }\nadd --x 1; add --y\npython $O', ["--x", "1", "--y"]),
        ("read -r -d '' O <<EOM || true\n --x\n --y 2\nEOM\npython ${O}", ["--x", "--y", "2"]),
        ("cat > a.sh <<'EOF'\npython $1 ${2:-3}\nEOF\nbash a.sh 5", ["5", "3"]),
        ("A=2; let B=A*4; V=$(cat <<EOT\n7\nEOT\n)\npython $B $V", ["8", "7"]),
        ("for N in 1 2; do for M in 3 4; do python $N $M; done; done", ["2", "4"]),
        ("for N in $X; do python $N; done", ["$X"]),
        ("while [[ $# -gt 0 ]]; do X=$1; shift; done\npython ${X:-8}", ["8"]),
        ("f() { if [ $1 = 7b ]; then echo 32; return; fi; echo 40; }\npython $(f 7b)", ["32"]),
        ("python $(echo a | tr a b) $(echo 2*3 | bc)", ["$(echo a | tr a b)", "6"]),
        ("A=(7 8)\n((A[0] > 6)) && B=${A[1]}\npython $B", ["8"]),
        ("A=x/B.sh\npython ${A##*/} ${A%.*} ${A,,} ${A:?no}", ["B.sh", "x/B", "x/b.sh", "x/B.sh"]),
        ("#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\npython $SLURM_NNODES", ["4"]),
    ],
)
def test_commands(text, words):
    command = read(text).commands[-1]
    assert command[command.index("python") :] == ["python", *words]


def test_a_script_that_another_one_runs_has_its_arguments_and_what_starts_it():
    files = {
        "/env.sh": "N=4",
        "x/run.sh": 'HERE=$(cd "$(dirname "$0")" && pwd)\nsource $HERE/env.sh\npython $1 $N',
    }
    script = Script(
        load=lambda name, folder: files.get(f"{folder}/{name}") or files.get(f"/{name[2:]}")
    )
    script.read("N=1; . env.sh\ncd x\nsrun -N 2 bash run.sh 7")
    script.read("sbatch <<EOT\n#SBATCH -N 3\nsrun bash -c 'python \\$SLURM_NNODES $N'\nEOT")
    assert script.commands == [
        ["srun", "-N", "2", "python", "7", "4"],
        ["srun", "python", "3", "4"],
    ]


@pytest.mark.parametrize(
    "text", ["f() { f; }\nf", "f() { f $1$1; }\nf ab", "a && " * 20_000, 1_000 * "("]
)
def test_what_never_ends_is_refused_or_read(text):
    with suppress(InputError):
        read(text)


def test_documents_doubts_and_defaults():
    script = read(
        'N=3\ncat <<EOT > "a.json"\n{"x": $N}\nEOT\nif [ -f y ]; then N=4; fi\npython ${M:-2}'
    )
    assert script.files == {"a.json": '{"x": 3}\n'}
    assert script.doubts == ["[ -f y ]"]
    assert script.set_here == {"M": "2"}
