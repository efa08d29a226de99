// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bytes"
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
