# Sourced by the scripts in this directory: their --help, the paths, and the environment that Spark and Java need.
set -euo pipefail
export PYTHON=${PYTHON:-python3}
# Containers often set it. Then every process compiles the package, and every worker rewrites all tests, anew.
export PYTHONDONTWRITEBYTECODE=

# The comment at the head of a script is its help.
usage() { sed -n '2,/^[^#]/ { /^#/ s/^# \{0,1\}//p }' "$0"; }
refuse() { echo "${0##*/}: $1; see $0 --help" >&2; exit 2; }
for argument in "$@"; do
  case $argument in --) break ;; -h | --help) usage; exit 0 ;; esac
done
cd "$(dirname "${BASH_SOURCE[0]}")/.."

BIN=$PWD/.venv/bin
RELEASE=dist/release
# The tests of the package without Spark, and the marks of those that need no server.
PACKAGE_TESTS=(tests --ignore tests/spark --ignore tests/load)
NO_SERVERS='not broker and not iggy_server'
HOST=$(rustc -vV | awk '/^host:/ { print $2 }')
# Spark, Maven and JMH find Java by JAVA_HOME or on the PATH; the two should not disagree.
if [ -z "${JAVA_HOME:-}" ] && command -v java > /dev/null; then
  JAVA_HOME=$(readlink -f "$(command -v java)")
  export JAVA_HOME=${JAVA_HOME%/bin/java}
fi
# Workers must run this environment's Python, and Spark must not look for an outer network interface.
export PYSPARK_PYTHON=$BIN/python PYSPARK_DRIVER_PYTHON=$BIN/python SPARK_LOCAL_IP=127.0.0.1
# Random inputs are the same in every run of the tests; `tools/fuzz properties` draws new ones.
export PROPTEST_RNG_SEED=${PROPTEST_RNG_SEED:-82}

# Bring files up to date that the Makefile has rules for: environments, the installed wheel, Java programs.
need() { make --no-print-directory "${@/#wheel/.venv/.wheel}"; }
need_nightly() {
  cargo +nightly --version > /dev/null 2>&1 || {
    echo "nightly Rust is needed: rustup toolchain install nightly --profile minimal" >&2
    exit 1
  }
}
