// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestVersions writes the versions in go.mod into the page about them.
func TestVersions(t *testing.T) {
	content, err := os.ReadFile(filepath.Join("..", "..", "go.mod"))
	require.NoError(t, err)
	table := "| | version |\n|---|---|\n"
	for _, of := range []struct{ what, module string }{
		{"Kubernetes", "k8s.io/kubernetes"},
		{"its libraries", "k8s.io/dynamic-resource-allocation"},
		{"CEL", "github.com/google/cel-go"},
		{"API of Open Cluster Management", "open-cluster-management.io/api"},
		{"controller-runtime", "sigs.k8s.io/controller-runtime"},
		{"Go, at least", "go"},
	} {
		found := regexp.MustCompile(`(?m)^\s*` + regexp.QuoteMeta(of.module) + ` (\S+)$`).FindSubmatch(content)
		require.NotNil(t, found, of.module)
		table += fmt.Sprintf("| %s | %s |\n", of.what, strings.TrimPrefix(string(found[1]), "v"))
	}
	checkGenerated(t, filepath.Join("docs", "versions.md"), map[string]string{"modules": table})
}
