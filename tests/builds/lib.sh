# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034,SC2154	# variables of and for who reads this
#
# Kernels of Debian packages, fetched by apt, unpacked into the cache and never
# installed. For scripts that have set $here and $top.

# Called by make or not, it is to be the same
unset MAKEFLAGS MAKELEVEL MFLAGS
# Where Debian puts what a user's PATH may lack
PATH=$PATH:/usr/sbin:/sbin

cache=${RTRS_CACHE:-$HOME/.cache/rtrs}/builds
work=$top/build/builds

say() { printf '%s\n' "$*" >&2; }

# The package and those it needs of the kernel's headers
header_packages()
{
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
		--no-replaces --no-enhances "$1" | grep -xE 'linux-(headers|kbuild)-.*' | sort -u
}

version() { apt-cache show --no-all-versions "$1" | sed -n 's/^Version: //p'; }

# unpack DIR PACKAGE...
unpack()
{
	local dir=$1 deb

	shift
	rm -rf "$dir.tmp" && mkdir -p "$dir.tmp/debs"
	say "fetching $*"
	(cd "$dir.tmp/debs" && apt-get -qq download "$@" 2>/dev/null) || return
	for deb in "$dir.tmp"/debs/*.deb; do
		dpkg-deb -x "$deb" "$dir.tmp" || return
	done
	rm -r "$dir.tmp/debs"
	mv "$dir.tmp" "$dir"
}

# The headers of a Debian kernel where they are, without the image for BTF that
# only some of them have. Leaves the folder to build against in $kernel
unpacked_headers()
{
	local packages dir

	dir=$cache/$1-$(version "$1") packages=$(header_packages "$1")
	if [ ! -d "$dir" ]; then
		# shellcheck disable=SC2086	# a list
		unpack "$dir" $packages || return
		sed -i "s,^include /,include $dir/," "$dir"/usr/src/*/Makefile
		rm -f "$dir"/usr/src/*/vmlinux
	fi
	kernel=$(dirname "$dir"/usr/src/*/.config)
}

# What the kernel of a build folder calls itself
release() { sed -n 's/.*UTS_RELEASE "\(.*\)"/\1/p' "$1/include/generated/utsrelease.h"; }

# The source of a Debian kernel. Leaves the folder in $source
unpacked_source()
{
	local dir

	dir=$cache/$1-$(version "$1")
	if [ ! -d "$dir" ]; then
		unpack "$dir" "$1" || return
		mkdir "$dir/linux" || return
		tar -xJf "$dir/usr/src/$1.tar.xz" -C "$dir/linux" --strip-components=1 || return
		rm -r "${dir:?}/usr"
	fi
	source=$dir/linux
}

# What is needed of a kernel's source: the last is what judges test results
parts=(Makefile drivers/infiniband/ulp/rtrs drivers/block/rnbd tools/testing/kunit)

# The same, but only some files of it, in a tenth of the time
unpacked_parts()
{
	local package=$1 dir deb

	shift
	source=$cache/$package-$(version "$package")/linux
	[ ! -d "$source" ] || return 0
	dir=$cache/parts-$package-$(version "$package") source=$dir/linux
	[ ! -d "$dir" ] || return 0
	rm -rf "$dir.tmp" && mkdir -p "$dir.tmp/debs" "$dir.tmp/linux"
	say "fetching $package"
	(cd "$dir.tmp/debs" && apt-get -qq download "$package" 2>/dev/null) || return
	deb=$(echo "$dir.tmp"/debs/*.deb)
	dpkg-deb --fsys-tarfile "$deb" | tar -xO "./usr/src/$package.tar.xz" |
		tar -xJ -C "$dir.tmp/linux" --strip-components=1 "${@/#/$package/}" || return
	rm -r "$dir.tmp/debs"
	mv "$dir.tmp" "$dir"
}

# What is built of our files, relative to $top, with \0 behind each
our_files() { (cd "$top" && git ls-files -coz --exclude-standard -- '*.[ch]' '*Kbuild'); }

# Our files alone, without what earlier builds have left
stage()
{
	rm -rf "$1" && mkdir -p "$1"
	our_files | (cd "$top" && xargs -0 cp --parents -t "$1")
}
