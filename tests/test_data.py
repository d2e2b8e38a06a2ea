"""The fixtures are what SHA256SUMS says."""
import hashlib

import support


def test_every_fixture_is_listed_and_unchanged():
  lines = (support.DATA / "SHA256SUMS").read_text().splitlines()
  listed = dict(reversed(line.split("  ", 1)) for line in lines)
  found = {p.relative_to(support.DATA).as_posix(): p for p in support.DATA.rglob("*") if p.is_file()}
  for own in "SHA256SUMS", "README.md":
    found.pop(own)
  assert set(found) == set(listed)
  changed = [name for name, path in found.items() if hashlib.sha256(path.read_bytes()).hexdigest() != listed[name]]
  assert changed == []


def test_all_fixtures_stay_small():
  assert sum(p.stat().st_size for p in support.DATA.rglob("*") if p.is_file()) < 36e6
