#!/usr/bin/env bash
# Installs the wheel in an empty environment of a Python and does with it what the README does first.
#
#   tests/release/try_wheel.sh PYTHON [OPTIONS OF regard compare]
#   tests/release/try_wheel.sh python3.12 --size tiny --budget 20steps
#
# The wheel is that of $WHEEL, or is built here by the hatchling of the Python that is active. pip takes what it needs from where it is told to
# (PIP_INDEX_URL, PIP_FIND_LINKS). Nothing of the checkout is on the path of what runs.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,8p' "$0" >&2; exit 2; }
checkout=$(cd "$(dirname "$0")/../.." && pwd)
interpreter=$1
shift
# The first command of the README, so that it is tried as it stands there.
first=$(sed -n 's/^regard //p' "$checkout/README.md" | head -n 1)
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
unset PYTHONPATH
if [ -z "${WHEEL:-}" ]; then
  (cd "$checkout" && python -m hatchling build -t wheel -d "$folder/dist" >/dev/null)
  WHEEL=$(echo "$folder"/dist/*.whl)
fi
"$interpreter" -m venv "$folder/environment"
python="$folder/environment/bin/python"
"$python" -m pip install --quiet --disable-pip-version-check --constraint "$checkout/constraints.txt" "$WHEEL"
mkdir "$folder/elsewhere"
cd "$folder/elsewhere"
export OMP_WAIT_POLICY=PASSIVE
"$python" --version
"$python" -c "import regard, sys; assert regard.__file__.startswith(sys.prefix), regard.__file__; print('regard', regard.__version__)"
regard() { "$folder/environment/bin/regard" "$@"; }
regard doctor
regard list --json >/dev/null
regard $first "$@"
"$python" -m pip uninstall --quiet --yes regard
if "$python" -c "import regard" 2>/dev/null; then
  echo "something of the package stays after its removal" >&2
  exit 1
fi
echo "the wheel works on $("$python" --version)"
