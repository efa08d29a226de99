// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

// read decodes a file of the repository's root; unknown fields are errors.
func read(t *testing.T, file string, into any) {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, file))
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalStrict(content, into), file)
}

// issueForm has the fields of GitHub's issue forms that we use.
type issueForm struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Labels      []string `json:"labels"`
	Body        []struct {
		Type       string `json:"type"`
		ID         string `json:"id"`
		Attributes struct {
			Label       string `json:"label"`
			Description string `json:"description"`
			Render      string `json:"render"`
		} `json:"attributes"`
		Validations struct {
			Required bool `json:"required"`
		} `json:"validations"`
	} `json:"body"`
}

// TestIssueForms knows what GitHub asks of a form; it shows none that has mistakes.
func TestIssueForms(t *testing.T) {
	forms := 0
	for _, file := range below(".github/ISSUE_TEMPLATE", ".yml") {
		if filepath.Base(file) == "config.yml" {
			continue
		}
		forms++
		var form issueForm
		read(t, file, &form)
		require.NotEmpty(t, form.Name, file)
		require.NotEmpty(t, form.Description, file)
		ids, labels := map[string]bool{}, map[string]bool{}
		for _, part := range form.Body {
			require.Contains(t, []string{"input", "textarea"}, part.Type, file)
			require.Regexp(t, `^[a-zA-Z0-9_-]+$`, part.ID, file)
			require.False(t, ids[part.ID], "%s: %s", file, part.ID)
			require.NotEmpty(t, part.Attributes.Label, file)
			require.False(t, labels[part.Attributes.Label], "%s: %s", file, part.Attributes.Label)
			require.False(t, part.Type == "input" && part.Attributes.Render != "", "%s: only text areas are rendered", file)
			ids[part.ID], labels[part.Attributes.Label] = true, true
		}
		require.NotEmpty(t, form.Body, file)
	}
	require.Positive(t, forms)
	var config struct {
		Blank bool `json:"blank_issues_enabled"`
		Links []struct {
			Name  string `json:"name"`
			URL   string `json:"url"`
			About string `json:"about"`
		} `json:"contact_links"`
	}
	read(t, ".github/ISSUE_TEMPLATE/config.yml", &config)
	for _, link := range config.Links {
		require.NotEmpty(t, link.Name)
		require.NotEmpty(t, link.About)
		require.True(t, strings.HasPrefix(link.URL, "https://"), link.URL)
	}
}

// pinned is an action that nobody can exchange, with its version for those who read it.
var pinned = regexp.MustCompile(`^\s*-?\s*uses: [\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)

// TestActionsArePinned: a tag can be moved to other code. That workflows are well-formed
// actionlint finds out, in "make lint".
func TestActionsArePinned(t *testing.T) {
	seen := 0
	for _, file := range below(".github/workflows", ".yaml") {
		var workflow map[string]any
		content, err := os.ReadFile(filepath.Join(root, file))
		require.NoError(t, err)
		require.NoError(t, yaml.Unmarshal(content, &workflow), file)
		require.Contains(t, workflow, "permissions", "%s has all rights", file)
		for line := range strings.Lines(string(content)) {
			if strings.Contains(line, "uses:") {
				seen++
				require.Regexp(t, pinned, strings.TrimRight(line, "\n"), file)
			}
		}
	}
	require.Positive(t, seen)
}

// TestUpdatesKnowEveryModule: tools that nobody updates grow old unseen. The older versions of
// Kubernetes are to stay what they are.
func TestUpdatesKnowEveryModule(t *testing.T) {
	var config struct {
		Updates []struct {
			Ecosystem   string   `json:"package-ecosystem"`
			Directory   string   `json:"directory"`
			Directories []string `json:"directories"`
		} `json:"updates"`
	}
	content, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &config))
	var updated []string
	for _, update := range config.Updates {
		if update.Ecosystem == "gomod" {
			updated = append(updated, append(update.Directories, update.Directory)...)
		}
	}
	updated = slices.DeleteFunc(updated, func(folder string) bool { return folder == "" })
	want := []string{"/"}
	for _, file := range below("hack/tools", "go.mod") {
		if folder := filepath.Dir(file); !strings.Contains(folder, "kubernetes-") {
			want = append(want, "/"+filepath.ToSlash(folder))
		}
	}
	require.ElementsMatch(t, want, updated)
}
