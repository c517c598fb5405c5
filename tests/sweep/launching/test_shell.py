"""Commands of scripts, as bash would expand them."""

import pytest

from paradl.sweep.launching.shell import Script


def read(text):
    script = Script()
    script.read(text)
    return script


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("A=1 B=2\nrun $A ${B}x '$A' \"$A $B\"", ["1", "2x", "$A", "1 2"]),
        ("run ${A:-8} ${B-9} ${C:=7} $C", ["8", "9", "7", "7"]),
        ("A=(--x # one\n '--y 2')\nrun ${A[@]} \"${A[@]}\"", ["--x", "--y", "2", "--x", "--y 2"]),
        ("A=(1)\nA+=(2)\nS=a\nS+=b\nrun ${A[*]} $S", ["1", "2", "ab"]),
        ("N=4\nG=8\nrun $(($N*G)) $((N + G / 3))", ["32", "6"]),
        ('O=" --a 1 \\\n --b"\nrun $O \\\n  --c', ["--a", "1", "--b", "--c"]),
        ("run $NODES $(hostname -I | head) `date`", ["$NODES", "$(hostname -I | head)", "`date`"]),
        ('if [ -z "$N" ]; then N=2; else N=3; fi\nrun $N', ["2"]),
        ("S=7\nif [ $S = 7 ]; then L=32; elif [ $S = 13 ]; then L=40; fi\nrun $L", ["32"]),
        ("S=13B\ncase $S in\n 7B|8B) L=32 ;;\n 13*) L=40 ;;\n *) L=1 ;;\nesac\nrun $L", ["40"]),
        ("N=4\nif [[ $N -gt 2 ]]\nthen\n X=big\nfi\nrun $X > log 2>&1", ["big"]),
        ("if [ -d /nowhere ]; then X=1; fi\nrun ${X:-0}", ["0"]),
        # What depends on more than the script does not hold, behind && and || either.
        ("P=1; [[ $NODES -gt 8 ]] && P=4; test -z $FOO || P=8\nrun $P", ["1"]),
        ("N=4; [ $N -gt 2 ] && P=4 || P=1; cd x || exit 1\nrun $P", ["4"]),
        ("N=4; if [ $N = 4 ] && [ $N = 5 ]; then P=2; else P=3; fi\nrun $P", ["3"]),
        ("N=4; if [ $N = 5 ] || [ $N = 4 ]; then P=2; else P=3; fi\nrun $P", ["2"]),
        ("f() {\n local a=$1; shift\n run $a $# \"$@\"\n}\nf 4 x 'y z'", ["4", "2", "x", "y z"]),
        ("function f {\n echo $(( $1 * 2 ))\n}\nrun $(f 4) $(expr 3 \\* 2)", ["8", "6"]),
        ('O=""\nadd() { O="$O $*"; }\nadd --x 1; add --y\nrun $O', ["--x", "1", "--y"]),
        ("read -r -d '' O <<EOM || true\n --x\n --y 2\nEOM\nrun ${O}", ["--x", "--y", "2"]),
        ("cat > a.sh <<'EOF'\nrun $1 ${2:-3}\nEOF\nbash a.sh 5", ["5", "3"]),
        ("A=2; let B=A*4; V=$(cat <<EOT\n7\nEOT\n)\nrun $B $V", ["8", "7"]),
        ("for N in 1 2; do X=$N; done\nrun $X", ["$N"]),
        ("#SBATCH --nodes=4\n#SBATCH --gres=gpu:h100:8\nrun $SLURM_NNODES", ["4"]),
    ],
)
def test_commands(text, words):
    command = read(text).commands[-1]
    assert command[command.index("run") :] == ["run", *words]


def test_documents_doubts_and_defaults():
    script = read(
        'N=3\ncat <<EOT > "a.json"\n{"x": $N}\nEOT\nif [ -f y ]; then N=4; fi\nrun ${M:-2}'
    )
    assert script.files == {"a.json": '{"x": 3}\n'}
    assert script.doubts == ["[ -f y ]"]
    assert script.set_here == {"M": "2"}
