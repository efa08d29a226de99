// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestKindInOtherWords checks that a directory leaves out no file with test cases.
func TestKindInOtherWords(t *testing.T) {
	folder := t.TempDir()
	for i, content := range []string{
		"kind:  ExpressionTest\n", "\"kind\": \"ExpressionTest\"\n", "\ufeffkind: ExpressionTest\n", "{apiVersion: a,kind: 'ExpressionTest'}", "---\r\nkind: ExpressionTest # a\r\n", "a: 1\rkind: ExpressionTest\r",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%d.yaml", i)), []byte(content), 0o600))
	}
	require.NoError(t, os.Symlink(filepath.Join(folder, "0.yaml"), filepath.Join(folder, "link.yaml")))
	for i, content := range []string{"kind: ExpressionTests\n", "akind: ExpressionTest\n", "kind: Pod\n"} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("other-%d.yaml", i)), []byte(content), 0o600))
	}
	files, err := find([]string{folder}, false)
	require.NoError(t, err)
	require.Len(t, files, 7, files)
}
