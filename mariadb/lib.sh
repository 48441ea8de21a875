# What `build`, `try` and `mtr` share: where things are, and bringing them there. To be sourced.
#
# The server is Debian's, of one version (a plugin fits exactly one), unpacked into a cache folder and
# run from there: the machine's own MariaDB, if it has one, is neither changed nor started.

set -euo pipefail

# Debian's revision of the server. Another one may be tried; the tests' results are of this one.
REVISION=${SHALE_MARIADB:-10.11.18-0+deb12u1}
VERSION=${REVISION%%-*}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=$(dirname "$here")
cache=${SHALE_CACHE:-$HOME/.cache/shale}/mariadb/$VERSION
root=$cache/root
source=$cache/source
# `cargo` is told the same, so that the library is found where it was built.
target=$(cd "$repository" && realpath -m "${CARGO_TARGET_DIR:-target}")
# This checkout's server: links to the unpacked one, with its own plugin and tests beside the others.
server=$target/mariadb/server

# Binary packages to unpack, and the folders of the source package that have private headers.
PACKAGES="mariadb-server mariadb-server-core mariadb-client mariadb-client-core libmariadb3
    libmariadb-dev libmariadbd-dev mariadb-test mariadb-test-data mariadb-plugin-rocksdb
    mariadb-plugin-provider-lz4"
SOURCES="include sql wsrep-lib libservices COPYING"

say() { echo "mariadb: $*" >&2; }
fail() {
    say "$*"
    exit 1
}

# Installs packages of Debian that are missing, none of which has a service.
need() {
    local package missing=()
    for package in "$@"; do
        dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
            missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]}"
    local sudo=
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            fail "these packages are missing: ${missing[*]}; install them as root by apt-get install"
        sudo=sudo
    fi
    $sudo apt-get update -qq
    $sudo env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs packages that have a service, which is not started.
need_without_service() {
    local policy=/usr/sbin/policy-rc.d
    [ -e $policy ] && need "$@" && return
    if [ "$(id -u)" = 0 ]; then
        printf '#!/bin/sh\nexit 101\n' >$policy
        chmod +x $policy
    fi
    need "$@"
    [ "$(id -u)" != 0 ] || rm -f $policy
}

# Downloads the packages into the current folder.
download() {
    local package pinned=()
    for package in $PACKAGES; do pinned+=("$package=1:$REVISION"); done
    if ! apt-get -qq download "${pinned[@]}" 2>download.log; then
        # The machine's list of packages may be empty, or older than the version asked for.
        if [ "$(id -u)" = 0 ]; then apt-get update -qq; fi
        apt-get -qq download "${pinned[@]}" || fail "Debian's sources in /etc/apt do not offer \
MariaDB $REVISION; is \`apt-get update\` done, on Debian 12? SHALE_MARIADB names another revision"
    fi
}

# Downloads a source package, PACKAGE=VERSION, into the current folder, with a list of sources of its
# own, since most machines have none of source packages.
download_source() {
    local options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
        -o "Dir::State::lists=$PWD/lists" -o APT::Get::List-Cleanup=0)
    local keys=/usr/share/keyrings/debian-archive-keyring.gpg signed=
    if [ -e $keys ]; then signed="[signed-by=$keys] "; fi
    mkdir -p lists/partial
    # Where the machine gets its binary packages from, whichever way that is written down.
    apt-get indextargets --format "\$(ORIGIN) deb-src $signed\$(REPO_URI) \$(RELEASE) \$(COMPONENT)" \
        'Created-By: Packages' | sed -n 's/^Debian \(.* main\)$/\1/p' | sort -u >sources.list
    [ -s sources.list ] || fail "/etc/apt names no source of Debian's packages"
    apt-get "${options[@]}" update -qq
    apt-get "${options[@]}" source -qq --download-only "$1" ||
        fail "Debian's sources in /etc/apt have no source package $1"
}

# Unpacks server, tests and headers into the cache, once.
fetch() {
    [ -e "$cache/complete" ] && return
    need ca-certificates
    mkdir -p "$cache"
    exec 8>"$cache/lock"
    flock 8
    [ -e "$cache/complete" ] && return
    say "fetching Debian's MariaDB $REVISION into $cache (320 MB to download, once)"
    rm -rf "$root" "$source" "$cache/download"
    mkdir -p "$root" "$source" "$cache/download"
    # apt would warn that its own user cannot write here.
    local package folders=() folder
    pushd "$cache/download" >/dev/null
    printf 'APT::Sandbox::User "root";\n' >apt.conf
    export APT_CONFIG=$PWD/apt.conf
    download
    for package in *.deb; do dpkg-deb -x "$package" "$root"; done
    download_source "mariadb=1:$REVISION"
    unset APT_CONFIG
    for folder in $SOURCES; do folders+=("mariadb-$VERSION/$folder"); done
    tar -xf "mariadb_$VERSION.orig.tar.gz" -C "$source" --strip-components=1 "${folders[@]}"
    popd >/dev/null
    # What the server's build makes of this file when it has no tracing.
    cp "$source/include/probes_mysql_nodtrace.h.in" "$source/include/probes_mysql_nodtrace.h"
    rm -rf "$cache/download"
    touch "$cache/complete"
    flock -u 8
}

# Unpacks one more package beside the server, unless its file is there; prints where that is.
fetch_extra() {
    local package=$1 file=$root/$2
    if ! [ -e "$file" ]; then
        exec 8>"$cache/lock"
        flock 8
        local folder=$cache/download
        rm -rf "$folder"
        mkdir -p "$folder"
        printf 'APT::Sandbox::User "root";\n' >"$folder/apt.conf"
        (cd "$folder" && export APT_CONFIG=$folder/apt.conf PACKAGES=$package && download)
        dpkg-deb -x "$folder/"*.deb "$root"
        rm -rf "$folder"
        flock -u 8
    fi
    echo "$file"
}

# Unpacks the original archive of another source package, PACKAGE=VERSION, into a folder, once.
fetch_source() {
    local package=$1 folder=$2
    [ -e "$folder" ] && return
    mkdir -p "$folder.download/unpacked"
    pushd "$folder.download" >/dev/null
    printf 'APT::Sandbox::User "root";\n' >apt.conf
    export APT_CONFIG=$PWD/apt.conf
    download_source "$package"
    unset APT_CONFIG
    # Some have a signature beside the archive.
    tar -xf ./*.orig.tar.*[!c] -C unpacked --strip-components=1
    popd >/dev/null
    mv "$folder.download/unpacked" "$folder"
    rm -rf "$folder.download"
}

# Unpacks packages of the machine's release into a folder, which has each one's version beside it. With
# OF_RELEASE=NAME those of another release, from where the machine gets its own.
fetch_packages() {
    local folder=$1 file package options=() keys=/usr/share/keyrings/debian-archive-keyring.gpg
    shift
    rm -rf "$folder"
    mkdir -p "$folder/download"
    pushd "$folder/download" >/dev/null
    printf 'APT::Sandbox::User "root";\n' >apt.conf
    export APT_CONFIG=$PWD/apt.conf
    if [ -n "${OF_RELEASE:-}" ]; then
        options=(-o "Dir::Etc::sourcelist=$PWD/sources.list" -o Dir::Etc::sourceparts=/dev/null
            -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache")
        mkdir -p lists/partial cache/archives/partial
        # Not its updates, which have folders of their own.
        apt-get indextargets --format "\$(ORIGIN) \$(RELEASE) deb [signed-by=$keys] \$(REPO_URI) \
$OF_RELEASE main" 'Created-By: Packages' | sed -n 's/^Debian [a-z]* //p' | sort -u >sources.list
        apt-get "${options[@]}" update -qq
    fi
    # The machine's list of packages may be older than what the mirror has.
    apt-get "${options[@]}" -qq download "$@" 2>download.log ||
        { [ "$(id -u)" != 0 ] || apt-get "${options[@]}" update -qq; } &&
        apt-get "${options[@]}" -qq download "$@" ||
        fail "Debian's sources in /etc/apt do not offer all of: $*"
    unset APT_CONFIG
    for file in *.deb; do
        dpkg-deb -x "$file" ..
        package=$(dpkg-deb -f "$file" Package)
        dpkg-deb -f "$file" Version >"../$package.version"
    done
    popd >/dev/null
    rm -rf "$folder/download"
}

# What the unpacked programs need of the machine, and what the tests' driver does.
need_runtime() {
    need libaio1 libedit2 liblz4-1 libncurses6 libnuma1 libpcre2-8-0 libpcre2-posix3 libsnappy1v5 \
        libssl3 libstdc++6 libsystemd0 liburing2 libzstd1 zlib1g perl patch diffutils
}

# Links every entry of a folder into another, except the one named.
link_all() {
    local from=$1 into=$2 except=${3:-} entry
    mkdir -p "$into"
    for entry in "$from"/*; do
        [ "$(basename "$entry")" = "$except" ] || ln -sfn "$entry" "$into/"
    done
}

# Lays out this checkout's server, unless it is as this file and the cache have it.
lay_out() {
    local tests=share/mysql/mysql-test stamp=$server/laid-out
    mkdir -p "$(dirname "$server")"
    # Two programs of a checkout may begin at once.
    exec 7>"$server.lock"
    flock 7
    if [ "$stamp" -nt "${BASH_SOURCE[0]}" ] && [ "$stamp" -nt "$cache/complete" ] &&
        [ "$(readlink "$server/bin")" = "$root/usr/bin" ]; then
        flock -u 7
        return
    fi
    rm -rf "$server"
    mkdir -p "$server/lib"
    ln -sfn "$root/usr/bin" "$server/bin"
    ln -sfn "$root/usr/sbin" "$server/sbin"
    ln -sfn "$client_library" "$server/lib/"
    link_all "$root/usr/share/mysql" "$server/share/mysql" mysql-test
    link_all "$root/usr/$tests" "$server/$tests" plugin
    # These have outputs of failed tests written beside them: copies, as the cache is of all checkouts.
    rm "$server/$tests/suite"
    link_all "$root/usr/$tests/suite" "$server/$tests/suite"
    rm "$server/$tests/suite/"{storage_engine,engines}
    cp -r "$root/usr/$tests/suite/"{storage_engine,engines} "$server/$tests/suite/"
    link_all "$root/usr/$tests/plugin" "$server/$tests/plugin"
    ln -sfn "$here/shale/mysql-test" "$server/$tests/plugin/shale"
    link_all "$root/usr/lib/mysql/plugin" "$server/lib/mysql/plugin"
    touch "$stamp"
    flock -u 7
}

# The clients' library is in none of the machine's folders.
client_library=$root/usr/lib/$(uname -m)-linux-gnu
export LD_LIBRARY_PATH=$client_library${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
