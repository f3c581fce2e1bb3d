# SPDX-License-Identifier: GPL-2.0-or-later
#
# What people type. The objects are in Kbuild, which the kernel's build prefers.

VM := tests/vm
FLAVOUR ?= fast
CLIENT ?= ours
KDIR ?= /lib/modules/$(shell uname -r)/build

.DEFAULT_GOAL := help
.PHONY: help demo check check-debug static model kunit bench report soak vm vm-list check-intree modules clean

help:		## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# KERNEL=debian or debian-6.12: on the kernel of Debian, nothing of it is built
ON_KERNEL := $(if $(KERNEL),kernel=$$(tests/builds/debian $(KERNEL)) && set -- --kernel "$$kernel" &&)

demo:		## two VMs, two links, one of them cut under load (KERNEL=debian: without building one)
	@$(VM)/install
	@$(ON_KERNEL) $(VM)/run demo "$$@"

check:		## all checks, ends with the number passed and failed
	@tests/check

check-debug:	## every suite and scenario on the debug kernel
	@tests/check debug

check-intree:	## our files built inside a copy of the kernel tree, and run
	@tests/check in-tree

static:		## checkpatch, sparse, W=1, kernel-doc, shellcheck and more
	@tests/static/run

vm:		## run VM scenarios (T="NAME...", FLAVOUR=fast|debug, CLIENT=ours|upstream, KERNEL=debian)
	@$(ON_KERNEL) $(VM)/run scenario $(T) --flavour $(FLAVOUR) --client $(CLIENT) "$$@"

vm-list:	## list the VM scenarios
	@$(VM)/run list

report:		## draw a failover to build/report, SVG and PNG (installs what it needs)
	@$(VM)/install tests/bench/packages
	@$(VM)/run picture

soak:		## half an hour of random cuts under verified IO (SECONDS=, SEED=)
	@RTRS_FLAP_SECONDS=$(or $(SECONDS),1800) RTRS_SEED=$(or $(SEED),$(shell date +%s)) \
		$(VM)/run scenario flap

bench:		## compare with upstream and nvme-rdma, in instructions (about 5 minutes)
	@$(VM)/install tests/bench/packages
	@tests/bench/bench

kunit:		## run the KUnit suites in a VM (FLAVOUR=fast|debug)
	@tests/kunit/run --flavour $(FLAVOUR)

.PHONY: check-builds check-debian check-arm64 check-docs man htmldocs install dkms-install dist intree patch
NAME := rtrs-$(shell sed -n 's/^PACKAGE_VERSION="\(.*\)"/\1/p' dkms.conf)

check-builds:	## compile for other kernels, machines and compilers (installs what it needs)
	@tests/builds/run $(T)

check-debian:	## our modules at work on the kernels of Debian 12 and of its backports
	@tests/builds/run debian

check-arm64:	## the KUnit suites on an arm64 kernel under emulation (builds one first)
	@$(VM)/install tests/builds/packages
	@tests/builds/kunit arm64

check-docs:	## are man pages and documents well made, is each command in them run by a test
	@$(VM)/install tests/docs/packages
	@tests/docs/run

man:		## make the man pages of section 9 in build/man
	@tests/docs/man build/man

htmldocs:	## make HTML of Documentation/ in build/html
	@$(VM)/install tests/docs/packages
	@tests/docs/html build/html

model:		## search the models of a request and of a path exhaustively (needs spin)
	@tests/model/run

# The last three are the kernel's own, and built if their source lies here
MODULES := $(addprefix CONFIG_,INFINIBAND_RTRS INFINIBAND_RTRS_CLIENT INFINIBAND_RTRS_SERVER \
	BLK_DEV_RNBD_CLIENT BLK_DEV_RNBD_SERVER)

modules:	## build the modules against a kernel (KDIR=its build folder)
	@compat/check before $(KDIR)
	$(MAKE) -C $(KDIR) M=$(CURDIR) $(addsuffix =m,$(MODULES)) modules

install: modules	## install them for that kernel, as root
	$(MAKE) -C $(KDIR) M=$(CURDIR) INSTALL_MOD_DIR=updates modules_install
	@compat/check installed $(KDIR)

dkms-install:	## have DKMS build them (KVER=), with server and RNBD of LINUX=DIR, as root
	@compat/dkms

dist:		## pack the last commit into a tar file
	@mkdir -p build
	git archive --prefix=$(NAME)/ -o build/$(NAME).tar.gz HEAD

intree:		## lay our files into a kernel tree (LINUX=DIR)
	@compat/upstream intree "$(LINUX)"

patch:		## write a patch series for the kernel (LINUX=DIR of Linux 7.3) to build/patches
	@compat/upstream patch "$(or $(LINUX),$(shell $(VM)/kernel source))" build/patches

clean:		## remove everything built here (the kernel cache stays)
	rm -rf build
	find . -name '*.o' -o -name '*.ko' -o -name '*.mod' -o -name '*.mod.c' -o -name '*.cmd' \
		-o -name Module.symvers -o -name modules.order | xargs -r rm -f

.PHONY: fuzz
fuzz:		## random servers until somebody stops it, or it fails (SEED=, STEPS=, FLAVOUR=)
	@tests/kunit/run fuzz --flavour $(FLAVOUR) --seed $(or $(SEED),0) --steps $(or $(STEPS),10000)

.PHONY: coverage check-kcsan
coverage:	## lines that the suites and scenarios execute, by file
	@tests/coverage/run

check-kcsan:	## the suites, and some scenarios, under the detector of data races
	@tests/kunit/run kcsan
