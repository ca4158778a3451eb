"""Where the values of a rendered setup come from: its study is built again, and its env file has the last word."""

from pathlib import Path

from cluster.study.env_files import read_env
from cluster.study.layers import check_keys
from cluster.study.origins import Layer, Origin, Origins
from cluster.study.places import experiments_root
from cluster.study.render import Choices, build
from cluster.study.studies import known_studies, read_study
from cluster.study.systems import System


def origins_of_env(env: Path, system: System) -> Origins:
    """Every layer that gave a KEY of an env file, the winner last.

    The file is what a job reads. What its study does not say, or says otherwise now, has the file as its origin.

    Raises:
        ConfigError: the env file, its study or a layer is wrong; file and line are named.
    """
    values, lines = read_env(env)
    rendered = Layer(f"env file of {values.get('SETUP', env.name)}", env, values, lines)
    check_keys(rendered)
    choices = Choices(system, hardware=values.get("HARDWARE"))
    below = _origins_now(values.get("STUDY", ""), values.get("SETUP", ""), choices)
    origins = {key: list(below.get(key, [])) for key in values}
    for key, said in origins.items():
        if not said or said[-1].value != values[key]:
            said.append(Origin(rendered.name, env, lines[key], values[key]))
    return origins


def _origins_now(study: str, setup: str, choices: Choices) -> Origins:
    """What the layers say of a setup today; nothing where its study, or the setup in it, is gone."""
    if study not in known_studies():
        return {}
    built = {one.name: one for one in build(read_study(study), experiments_root(), choices)}
    return built[setup].origins if setup in built else {}
