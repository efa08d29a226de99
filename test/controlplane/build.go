// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"io"
)

// Build brings binaries up to date and returns their directory: binDir or, if binDir is empty, the result of [BinDir]. A name
// is a constant of this package or a folder in cmd/. Without names, Build builds all binaries except [NodeBinaries].
//
// `go build` decides which binaries are stale; this takes about a second if all are current. Any number of processes may build
// concurrently while other processes run the binaries, because Build replaces each binary atomically. Build writes a line to
// progress (which may be nil) for each step that takes longer than a second.
func Build(ctx context.Context, binDir string, progress io.Writer, names ...string) (string, error) {
	return buildBinaries(ctx, binDir, newProgress(progress), names)
}

// buildBinaries runs the compilations one after the other. A single compilation occupies all processors, and two concurrent
// ones would both compile their shared packages.
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
