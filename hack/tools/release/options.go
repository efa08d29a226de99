// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

// options say what is released. Lists are separated by commas.
type options struct {
	version, registry, source, output, revision string

	time                             string
	programs, platforms, pluginsList string

	// created is the time, decoded.
	created time.Time
}

// pluginPlatforms are those of the kubectl plugin: where people run kubectl.
const pluginPlatforms = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func (o *options) register(flags *flag.FlagSet) {
	flags.StringVar(&o.version, "version", "", "version, such as v0.1.0")
	flags.StringVar(&o.registry, "registry", "ghcr.io/celset", "registry and path that images and charts will be below")
	flags.StringVar(&o.source, "source", ".", "root of the source tree")
	flags.StringVar(&o.output, "output", "dist", "directory to write to; an earlier release in it is replaced")
	flags.StringVar(&o.revision, "revision", "", "commit, to be named in images")
	flags.StringVar(&o.time, "time", "", "time of all files, in seconds since 1970: that of the commit")
	flags.StringVar(&o.programs, "programs", "", "programs with an image; empty: all of .ko.yaml")
	flags.StringVar(&o.platforms, "platforms", "", "platforms of images; empty: those of .ko.yaml")
	flags.StringVar(&o.pluginsList, "plugin-platforms", pluginPlatforms, "platforms of the kubectl plugin")
}

func (o *options) complete() error {
	if !semver.IsValid(o.version) || semver.Canonical(o.version) != o.version {
		return fmt.Errorf("version %q: must be a semantic version with a v, such as v0.1.0", o.version)
	}
	seconds, err := strconv.ParseInt(o.time, 10, 64)
	if err != nil {
		return fmt.Errorf("time %q: must be seconds since 1970, such as `git log -1 --format=%%ct` prints", o.time)
	}
	o.created = time.Unix(seconds, 0).UTC()
	o.registry = strings.TrimSuffix(o.registry, "/")
	if o.source, err = filepath.Abs(o.source); err != nil {
		return err
	}
	o.output, err = filepath.Abs(o.output)
	return err
}

// clear makes the output an empty directory. What is no release is not deleted.
func (o *options) clear() error {
	entries, err := os.ReadDir(o.output)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	_, err = os.Stat(filepath.Join(o.output, checksums))
	if _, unfinished := os.Stat(filepath.Join(o.output, unfinishedMark)); len(entries) > 0 && err != nil && unfinished != nil {
		return fmt.Errorf("%s is neither empty nor a release: delete it, or name another directory with --output", o.output)
	}
	if err := os.RemoveAll(o.output); err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.output, unfinishedMark), nil, 0o600)
}

// unfinishedMark is a file that is there as long as the directory is no complete release.
const unfinishedMark = ".unfinished"

func split(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' })
}
