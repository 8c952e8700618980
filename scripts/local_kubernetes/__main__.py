"""`python -m scripts.local_kubernetes up | down | env | load ARCHIVE…`: the cluster of `make cluster-up`."""

import sys
from pathlib import Path

from scripts.local_kubernetes import choice, loading
from scripts.local_kubernetes.commands import CommandFailed
from scripts.local_kubernetes.programs import ProgramFailed
from scripts.local_kubernetes.progress import console

USAGE = "usage: python -m scripts.local_kubernetes up | down | env | load ARCHIVE…"


def main(words: list[str]) -> None:
    match words:
        case ["up"]:
            choice.up()
            console.print("the cluster runs; `eval $(make -s cluster-env)` lets kubectl and helm talk to it")
        case ["down"]:
            console.print("the cluster is gone" if choice.down() else "no cluster runs here")
        case ["env"]:
            print_environment()
        case ["load", *archives]:
            load(list(map(Path, archives)))
        case _:
            sys.exit(USAGE)


def print_environment() -> None:
    found = choice.running()
    if found is None:
        raise CommandFailed("no cluster runs here: `make cluster-up` starts one")
    print(f'export KUBECONFIG="{found.kubeconfig}"')
    if found.programs:
        print(f'export PATH="{found.programs}:$PATH"')


def load(archives: list[Path]) -> None:
    found = choice.running()
    if found is None:
        console.print("no cluster runs here, so the images stay where they were built")
    else:
        loading.load(found, archives)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (CommandFailed, ProgramFailed) as failed:
        sys.exit(f"cluster: {failed}")
    except KeyboardInterrupt:
        sys.exit("cluster: interrupted; `make cluster-down` removes what was started")
