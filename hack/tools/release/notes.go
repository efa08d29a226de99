// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeNotes writes what has changed, as CHANGELOG.md has it, and the images by digest.
func writeNotes(o *options, released *images) error {
	changes, err := os.ReadFile(filepath.Join(o.source, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	text, err := section(string(changes), o.version)
	if err != nil {
		return fmt.Errorf("CHANGELOG.md: %w", err)
	}
	var notes strings.Builder
	fmt.Fprintf(&notes, "%s\n\n## Images\n\n", text)
	for _, program := range released.programs() {
		fmt.Fprintf(&notes, "- `%s`\n", released.reference(program))
	}
	return os.WriteFile(filepath.Join(o.output, "release-notes.md"), []byte(notes.String()), 0o644)
}

// section is that of a version, or of what is not released if there is none.
func section(changes, version string) (string, error) {
	for _, title := range []string{version, strings.TrimPrefix(version, "v"), "Unreleased"} {
		var lines []string
		inside := false
		for line := range strings.Lines(changes) {
			if heading, found := strings.CutPrefix(line, "## "); found {
				fields := strings.Fields(heading)
				inside = len(fields) > 0 && strings.Trim(fields[0], "[]") == title
				continue
			}
			if inside {
				lines = append(lines, line)
			}
		}
		if text := strings.TrimSpace(strings.Join(lines, "")); text != "" {
			return text, nil
		}
	}
	return "", errors.New("there is neither a section of " + version + " nor one of what is unreleased")
}
