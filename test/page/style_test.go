// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cmd/kubectl-celset/draw"
)

// TestStyleHasPictures checks that the page has the rules of the pictures, because pictures in answers have no rules.
func TestStyleHasPictures(t *testing.T) {
	style, err := os.ReadFile(filepath.Join("..", "..", "internal", "page", "assets", "style.css"))
	require.NoError(t, err)
	require.Contains(t, string(style), strings.TrimSpace(draw.Stylesheet()))
}
