// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package layout

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNothingOfTestsIsShipped: what only tests use stands below these folders, and
// nothing else imports it.
func TestNothingOfTestsIsShipped(t *testing.T) {
	tests := []string{module + "/internal/testing", module + "/test"}
	packages, err := list()
	require.NoError(t, err)
	for path, p := range packages {
		if !under(path, module) || underAny(path, tests) {
			continue
		}
		for _, dependency := range p.Deps {
			if underAny(dependency, tests) {
				t.Errorf("%s must not depend on %s, which is for tests", path, dependency)
			}
		}
	}
}

// TestInternalIsShipped: a package of internal that is in no program is for tests
// alone.
func TestInternalIsShipped(t *testing.T) {
	// The catalogue is no test, and no program reads it: it writes a page of docs.
	shipped := []string{module + "/internal/messages"}
	packages, err := list()
	require.NoError(t, err)
	for path, p := range packages {
		if under(path, module) && !under(path, module+"/test") && p.Name == "main" {
			shipped = append(append(shipped, path), p.Deps...)
		}
	}
	for path := range packages {
		if under(path, module+"/internal") && !under(path, module+"/internal/testing") && !slices.Contains(shipped, path) {
			t.Errorf("%s is in no program: if tests use it, it belongs below internal/testing", path)
		}
	}
}
