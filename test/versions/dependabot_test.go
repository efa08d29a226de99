// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
	"sigs.k8s.io/yaml"
)

const root = "../.."

// updates is an entry of dependabot's configuration.
type updates struct {
	Ecosystem   string   `json:"package-ecosystem"`
	Directory   string   `json:"directory"`
	Directories []string `json:"directories"`
	Groups      map[string]struct {
		Patterns []string `json:"patterns"`
		Exclude  []string `json:"exclude-patterns"`
	} `json:"groups"`
	Ignore []ignored `json:"ignore"`
}

// ignored describes updates of a module that dependabot must not propose. Without types and versions, these are all updates.
type ignored struct {
	Name     string   `json:"dependency-name"`
	Types    []string `json:"update-types"`
	Versions []string `json:"versions"`
}

// updatesByFolder maps each folder with a go.mod to its entry in dependabot's configuration.
func updatesByFolder(t *testing.T) map[string]updates {
	t.Helper()
	var config struct {
		Updates []updates `json:"updates"`
	}
	content, err := os.ReadFile(filepath.Join(root, ".github", "dependabot.yml"))
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(content, &config))
	of := map[string]updates{}
	for _, update := range config.Updates {
		if update.Ecosystem != "gomod" {
			continue
		}
		for _, folder := range append(update.Directories, update.Directory) {
			if folder != "" {
				require.NotContains(t, of, folder, "%s has two configurations", folder)
				of[folder] = update
			}
		}
	}
	return of
}

// matches reports whether the path of a module matches a pattern in dependabot's configuration.
func matches(pattern, module string) bool {
	before, after, hasStar := strings.Cut(pattern, "*")
	if !hasStar {
		return pattern == module
	}
	return len(module) >= len(before)+len(after) && strings.HasPrefix(module, before) && strings.HasSuffix(module, after)
}

// groupsOf returns the names of the groups in dependabot's configuration that contain the module.
func (u *updates) groupsOf(module string) (names []string) {
	matchesOne := func(patterns []string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, module) })
	}
	for name, group := range u.Groups {
		if matchesOne(group.Patterns) && !matchesOne(group.Exclude) {
			names = append(names, name)
		}
	}
	return names
}

// ignores returns the updates of a module that dependabot must not propose. It returns nil if dependabot may propose all.
func (u *updates) ignores(module string) *ignored {
	for i := range u.Ignore {
		if matches(u.Ignore[i].Name, module) {
			return &u.Ignore[i]
		}
	}
	return nil
}

func readModule(t *testing.T, folder string) *modfile.File {
	t.Helper()
	path := filepath.Join(root, folder, "go.mod")
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	module, err := modfile.Parse(path, content, nil)
	require.NoError(t, err)
	return module
}

// onlyPatches lists the update types that maintainers do by hand. Dependabot then proposes only patch versions.
var onlyPatches = []string{"version-update:semver-major", "version-update:semver-minor"}

// TestEveryModuleIsUpdated checks that dependabot's configuration has an entry for each go.mod. Otherwise the modules there
// would become outdated without notice.
func TestEveryModuleIsUpdated(t *testing.T) {
	want := []string{"/"}
	files, err := filepath.Glob(filepath.Join(root, "hack", "tools", "*", "go.mod"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		want = append(want, "/hack/tools/"+filepath.Base(filepath.Dir(file)))
	}
	var configured []string
	for folder := range updatesByFolder(t) {
		configured = append(configured, folder)
	}
	require.ElementsMatch(t, want, configured)
}

// TestKubernetesIsUpdatedTogether checks that dependabot updates all modules of Kubernetes together, and only to patch
// versions. A new minor version needs manual work.
func TestKubernetesIsUpdatedTogether(t *testing.T) {
	seen := 0
	for folder, update := range updatesByFolder(t) {
		if folder != "/" && !strings.Contains(folder, "kubernetes-") {
			continue
		}
		seen++
		for _, required := range readModule(t, folder).Require {
			module := required.Mod.Path
			groups, ignores := update.groupsOf(module), update.ignores(module)
			switch {
			case strings.HasPrefix(module, "k8s.io/"):
				require.Equal(t, []string{"kubernetes"}, groups, "%s: %s", folder, module)
				require.NotNil(t, ignores, "%s: %s", folder, module)
				require.ElementsMatch(t, onlyPatches, ignores.Types, "%s: %s", folder, module)
				require.Empty(t, ignores.Versions, "%s: %s", folder, module)
			case folder == "/":
				require.Equal(t, []string{"others"}, groups, module)
			}
		}
	}
	require.Equal(t, 4, seen)
}

// TestHeldModules checks that dependabot does not update two modules: the version of CEL must be the one that Kubernetes uses,
// and Go 1.26 can't build a newer kustomize.
func TestHeldModules(t *testing.T) {
	update := updatesByFolder(t)["/"]
	cel := update.ignores("github.com/google/cel-go")
	require.NotNil(t, cel)
	require.Empty(t, cel.Types)
	require.Empty(t, cel.Versions)
	for _, required := range readModule(t, "").Require {
		if module := required.Mod.Path; !required.Indirect && strings.HasPrefix(module, "sigs.k8s.io/kustomize/") {
			kustomize := update.ignores(module)
			require.NotNil(t, kustomize, module)
			require.Len(t, kustomize.Versions, 1)
			first := "v" + strings.TrimPrefix(kustomize.Versions[0], ">=")
			require.Negative(t, semver.Compare(required.Mod.Version, first), "%s is held below %s", required.Mod, first)
		}
	}
}

// TestOlderVersionsOfKubernetes checks that dependabot updates only the versions in require directives. Versions in replace
// directives are updated by hand.
func TestOlderVersionsOfKubernetes(t *testing.T) {
	require.Empty(t, readModule(t, "").Replace, "go.mod: the go command ignores replacements in a module that others require")
	folders, err := filepath.Glob(filepath.Join(root, "hack", "tools", "kubernetes-*"))
	require.NoError(t, err)
	require.NotEmpty(t, folders)
	for _, folder := range folders {
		folder = filepath.ToSlash(strings.TrimPrefix(folder, filepath.FromSlash(root)))
		_, minor, _ := strings.Cut(folder, "kubernetes-1.")
		module, version := readModule(t, folder), ""
		for _, required := range module.Require {
			if required.Mod.Path == "k8s.io/kubernetes" {
				version = required.Mod.Version
			}
		}
		require.Equal(t, "v1."+minor, semver.MajorMinor(version), folder)
		for _, replaced := range module.Replace {
			require.Equal(t, "v0"+strings.TrimPrefix(version, "v1"), replaced.New.Version, "%s: %s has another version than k8s.io/kubernetes", folder, replaced.New.Path)
		}
	}
}
