// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// checksums is the file with the sums of all others.
const checksums = "SHA256SUMS"

// build writes a release to the output directory.
func build(ctx context.Context, o *options) error {
	if err := o.complete(); err != nil {
		return err
	}
	if err := setEnvironment(); err != nil {
		return err
	}
	if err := o.clear(); err != nil {
		return err
	}
	var released *images
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"images", func() (err error) { released, err = buildImages(ctx, o); return err }},
		{"chart", func() error { return packageCharts(ctx, o, released) }},
		{"manifests", func() error { return renderManifests(o, released) }},
		{"kubectl plugin", func() error { return buildPlugin(ctx, o) }},
		{"release notes", func() error { return writeNotes(o, released) }},
		{checksums, func() error { return writeChecksums(o.output) }},
	} {
		started := time.Now()
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		fmt.Printf("%s: %s\n", step.name, time.Since(started).Round(time.Second))
	}
	return nil
}

// writeChecksums is the last step: the release is complete then.
func writeChecksums(folder string) error {
	if err := os.Remove(filepath.Join(folder, unfinishedMark)); err != nil {
		return err
	}
	var sums bytes.Buffer
	// In the order of names.
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		fmt.Fprintf(&sums, "%x  %s\n", sum.Sum(nil), filepath.ToSlash(name))
		return err
	})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, checksums), sums.Bytes(), 0o644)
}
