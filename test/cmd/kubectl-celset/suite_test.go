// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

// TestCasesOfExamples runs the test cases of the examples and of the hardware pages.
func TestCasesOfExamples(t *testing.T) {
	var stdout, stderr bytes.Buffer
	root := filepath.Join("..", "..", "..")
	code := cli.Run(t.Context(), []string{"test", filepath.Join(root, "manifests", "examples", "tests"), filepath.Join(root, "docs", "hardware", "tests")},
		genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
	require.Zero(t, code, "%s%s", &stdout, &stderr)
	t.Logf("%s", &stdout)
}

// TestPageOfCases runs the first test of the page about test cases, on files as a reader saves them.
func TestPageOfCases(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "testing-expressions.md"))
	require.NoError(t, err)
	found := claims.FindAllStringSubmatch(string(content), -1)
	require.Greater(t, len(found), 1)
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("four-gpus.yaml", []byte(found[0][1]), 0o600))
	require.NoError(t, os.WriteFile("four-gpus-test.yaml", []byte(found[1][1]), 0o600))
	var stdout bytes.Buffer
	code := cli.Run(t.Context(), []string{"test", "four-gpus-test.yaml"}, genericiooptions.IOStreams{Out: &stdout, ErrOut: &stdout})
	require.Zero(t, code, "%s", &stdout)
}
