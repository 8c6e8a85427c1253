# Debian packages: which of setup/packages are missing, and their installation. What the long tests alone need stands in
# setup/packages.long, and nobody else is asked for it.
# shellcheck shell=bash disable=SC2154

# package_names [long]
package_names() { sed 's/#.*//; s/[[:space:]].*//; /^$/d' "$root/setup/packages" ${1:+"$root/setup/packages.$1"}; }

missing_packages() {
  local names installed
  mapfile -t names < <(package_names "$@")
  # dpkg-query fails when it does not know one of them, but still lists the others.
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "${names[@]}" 2>/dev/null | sed -n 's/^installed //p') || true
  comm -23 <(printf '%s\n' "${names[@]}" | sort) <(sort <<<"$installed")
}

ensure_packages() {
  local missing command as_root=()
  command -v dpkg-query >/dev/null ||
    fail 2 "no dpkg-query: this set-up is for Debian 12. Elsewhere install what setup/packages lists, then use meson."
  mapfile -t missing < <(missing_packages "$@")
  ((${#missing[@]})) || return 0

  command="apt-get install --no-install-recommends ${missing[*]}"
  if (($(id -u) != 0)); then
    # A sudo that would ask for a password is of no use without a terminal.
    if ! command -v sudo >/dev/null || { [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; }; then
      fail 2 "Debian packages are missing: ${missing[*]}. Installing them takes root; as root run: apt-get update && $command"
    fi
    as_root=(sudo)
  fi
  say "installing Debian packages: ${missing[*]}"
  {
    # Finishes what an interrupted installation has left half done.
    "${as_root[@]}" dpkg --configure -a &&
      "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=600 update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
        apt-get -o DPkg::Lock::Timeout=600 install -y --no-install-recommends "${missing[@]}"
  } >&2 </dev/null || fail 2 "apt-get could not install ${missing[*]}; see above. To do it by hand: apt-get update && $command"
}
