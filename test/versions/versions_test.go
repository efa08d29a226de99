// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package versions

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/minor"
)

var update = flag.Bool("update", false, "write down what the API server has")

// facts describes the API of an API server. Each list is sorted.
type facts struct {
	// Kinds are the kinds that the API server serves by default, as "group/version/Kind".
	Kinds []string `json:"kinds"`
	// Fields are the fields in resource.k8s.io/v1, as "Type.field".
	Fields []string `json:"fields"`
	// Functions are the CEL functions and syntax that the API server compiles in selectors.
	Functions []string `json:"functions"`
}

// groups are the API groups of the kinds that celset uses and that DRA adds.
var groups = []string{"resource.k8s.io", "scheduling.k8s.io"}

// selectors maps a function, or a piece of syntax, to a selector that uses it.
var selectors = map[string]string{
	"`device.allowMultipleAllocations`": `device.allowMultipleAllocations == true`,
	"`includes`, for lists and scalars": `device.attributes["a.example.com"].x.includes("y")`,
	"`semver(x)`":                       `semver("1.2.3").isGreaterThan(semver("1.0.0"))`,
	"`semver(x, normalize)`":            `semver("v1.2", true).major() == 1`,
	"`quantity`":                        `quantity("1Gi").isGreaterThan(quantity("1Mi"))`,
	"`quantity(x).asInteger`, `add`":    `quantity("1Gi").add(1).asInteger() > 1`,
	"`sets`":                            `sets.contains([1, 2], [1])`,
	"`ip`, `cidr`":                      `cidr("10.0.0.0/8").containsIP(ip("10.0.0.1"))`,
	"`url`":                             `url("https://example.com/").getHost() == "example.com"`,
	"`format`":                          `!format.dns1123Label().validate("a").hasValue()`,
	"`find`":                            `"abc 1".find("[0-9]") == "1"`,
	"`strings`":                         `"a,b".split(",").size() == 2`,
	"`math`":                            `math.greatest(1, 2) == 2`,
	"`cel.bind`":                        `cel.bind(x, 1, x == 1)`,
	"`base64`":                          `base64.encode(b"a") == "YQ=="`,
	"`regex`":                           `regex.replace("a", "a", "b") == "b"`,
	"lists: `sum`, `indexOf`":           `[1, 2].sum() == 3 && [1].indexOf(1) == 0`,
	"lists: `sort`, `distinct`":         `[2, 1].sort() == [1, 2] && [1, 1].distinct() == [1]`,
	"lists: `flatten`, `slice`":         `[[1]].flatten() == [1] && [1, 2].slice(0, 1) == [1]`,
	"`a.?b.orValue(c)`":                 `device.attributes["a.example.com"].?x.orValue(1) == 1`,
	"comprehensions with two variables": `[1, 2].all(i, v, v > i)`,
	"`==` of numbers of two types":      `1 == 1.0 || 1 < 2.0`,
}

// TestServed compares the API of the API server with the facts in testdata.
func TestServed(t *testing.T) {
	cp := env.APIServer(t)
	served := facts{Kinds: kindsOf(t, cp.Client()), Fields: fieldsOf(t, cp.Client()), Functions: functionsOf(t, cp.Client())}

	of := minor.Version()
	if of == "" {
		of = utilfeature.DefaultMutableFeatureGate.EmulationVersion().String()
	}
	path := filepath.Join("testdata", of+".yaml")
	content, err := yaml.Marshal(served)
	require.NoError(t, err)
	if *update {
		require.NoError(t, os.WriteFile(path, content, 0o644))
		return
	}
	recorded, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, cmp.Diff(string(recorded), string(content)), "%s is not what the API server has: run this test with -update, and \"make generate-docs\"", path)
}

func kindsOf(t *testing.T, client kubernetes.Interface) (kinds []string) {
	t.Helper()
	_, lists, err := client.Discovery().ServerGroupsAndResources()
	require.NoError(t, err)
	for _, list := range lists {
		group, _, _ := strings.Cut(list.GroupVersion, "/")
		if !slices.Contains(groups, group) {
			continue
		}
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				kinds = append(kinds, list.GroupVersion+"/"+resource.Kind)
			}
		}
	}
	slices.Sort(kinds)
	return kinds
}

func fieldsOf(t *testing.T, client kubernetes.Interface) (fields []string) {
	t.Helper()
	paths, err := client.Discovery().OpenAPIV3().Paths()
	require.NoError(t, err)
	document, err := paths["apis/resource.k8s.io/v1"].Schema("application/json")
	require.NoError(t, err)
	var schemas struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(document, &schemas))
	for name, schema := range schemas.Components.Schemas {
		kind, ok := strings.CutPrefix(name, "io.k8s.api.resource.v1.")
		if !ok {
			continue
		}
		for field := range schema.Properties {
			fields = append(fields, kind+"."+field)
		}
	}
	require.Greater(t, len(fields), 50)
	slices.Sort(fields)
	return fields
}

// functionsOf returns the functions in selectors that the API server can compile. For each selector, it creates a DeviceClass
// by a dry run.
func functionsOf(t *testing.T, client kubernetes.Interface) (functions []string) {
	t.Helper()
	for name, expression := range selectors {
		_, err := client.ResourceV1().DeviceClasses().Create(t.Context(), &resourceapi.DeviceClass{
			ObjectMeta: metav1.ObjectMeta{Name: "class"},
			Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &resourceapi.CELDeviceSelector{Expression: expression}}}},
		}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil {
			functions = append(functions, name)
			continue
		}
		require.True(t, apierrors.IsInvalid(err), "%s: %v", expression, err)
		require.ErrorContains(t, err, "compilation failed", expression)
	}
	require.NotEmpty(t, functions)
	slices.Sort(functions)
	return functions
}
