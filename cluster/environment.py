"""What the processes of a job see of the environment: an allow-list, so that a caller's variables change no grade."""

from collections.abc import Iterable, Mapping

_ALLOWED = frozenset(
    (
        *("HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "PATH", "LD_LIBRARY_PATH", "TMPDIR"),
        *("XDG_CACHE_HOME", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    )
)
_PREFIXES = ("LC_", "KCOURT_")


def allowed(environ: Mapping[str, str], keys: Iterable[str] = ()) -> dict[str, str]:
    """The part of `environ` that a job may have, with the variables of `keys`: the names of the keys it needs."""
    named = _ALLOWED.union(keys)
    return {name: value for name, value in environ.items() if name in named or name.startswith(_PREFIXES)}
