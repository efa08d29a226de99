// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlcelset

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/celset/celset/cmd/kubectl-celset/cli"
)

var example = regexp.MustCompile("(?s)```\n\\$ kubectl celset ([^\n]*)\n(.*?)```")

// TestPagesShowWhatIsPrinted checks the command output that pages quote. Each quoted line must be in the output for the
// scripts' clusters. If a quoted line ends with dots, it must be the beginning of a line. Pages may leave out lines.
func TestPagesShowWhatIsPrinted(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	machine := filepath.Join(t.TempDir(), "machine.yaml")
	require.NoError(t, writeMachine(machine))
	requireShown(t, "kubectl.md", 5, "-f", filepath.Join("testdata", "cluster"), "-f", machine)
	requireShown(t, "preferences.md", 2, "-f", filepath.Join("testdata", "fragmented"))
}

func requireShown(t *testing.T, name string, count int, files ...string) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", name))
	require.NoError(t, err)
	examples := example.FindAllStringSubmatch(string(page), -1)
	require.Len(t, examples, count)
	for _, match := range examples {
		t.Run(match[1], func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cli.Run(t.Context(), append(strings.Fields(match[1]), files...), genericiooptions.IOStreams{Out: &stdout, ErrOut: &stderr})
			printed := strings.Split(stdout.String(), "\n")
			for line := range strings.Lines(match[2]) {
				line = strings.TrimRight(line, "\n")
				begin, isCut := strings.CutSuffix(line, "...")
				for len(printed) > 0 && printed[0] != line && (!isCut || !strings.HasPrefix(printed[0], begin)) {
					printed = printed[1:]
				}
				require.NotEmpty(t, printed, "%q is not printed, or not there:\n%s%s", line, &stdout, &stderr)
				printed = printed[1:]
			}
		})
	}
}
