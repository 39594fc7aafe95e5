"""Examples of pages may run on a busy machine."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "pages",
    settings.default,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("pages")
