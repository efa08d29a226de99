// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
)

// Build brings binaries up to date and returns their directory: binDir, or what
// [BinDir] returns if that is empty. A name is one of the constants of this
// package or that of a folder in cmd/. Without names, Build builds all of them but
// [NodeBinaries].
//
// `go build` decides what there is to do, which takes about a second if that is
// nothing. Any number of processes may build at once, and while others
// run the binaries: one becomes visible when it is complete. Lines on progress
// (which may be nil) tell about steps that take longer than a second.
func Build(ctx context.Context, binDir string, progress io.Writer, names ...string) (string, error) {
	return buildBinaries(ctx, binDir, newProgress(progress), names)
}

// buildBinaries runs one compilation after the other: a single one occupies all
// processors, and two at once would both compile what their programs share.
func buildBinaries(ctx context.Context, binDir string, progress *progress, names []string) (string, error) {
	root, err := ModuleRoot()
	if err != nil {
		return "", fmt.Errorf("build binaries: %w", err)
	}
	if binDir == "" {
		if binDir, err = BinDir(); err != nil {
			return "", err
		}
	}
	if len(names) == 0 {
		if names, err = allBinaries(root); err != nil {
			return "", err
		}
	}
	targets, err := resolveTargets(ctx, root, names)
	if err != nil {
		return "", err
	}
	for _, c := range compilations(targets) {
		err := progress.step("building "+c.names(), c.names()+" built", func() error {
			return c.build(ctx, root, binDir)
		})
		if err != nil {
			return "", err
		}
	}
	return binDir, nil
}
