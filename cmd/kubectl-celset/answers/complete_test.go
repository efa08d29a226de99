// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package answers_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/celset/celset/cel"
	"github.com/celset/celset/cel/device"
	"github.com/celset/celset/cel/device/library"
	"github.com/celset/celset/cmd/kubectl-celset/answers"
)

const claimText = `apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: a}
spec:
  devices:
    requests:
    - name: gpus
      exactly:
        deviceClassName: gpu.nvidia.com
        allocationMode: ExactCount
        selectors:
        - cel:
            expression: device.driver == 'gpu.nvidia.com'
    constraints:
    - matchAttribute: celset.dev/ring
    config:
    - opaque:
        driver: celset.dev
        parameters:
          apiVersion: celset.dev/v1alpha1
          kind: CELDeviceConstraint
          name: ring
          variables:
          - name: x
            expression: device.attributes['gpu.nvidia.com'].index
          expression: |
            devices.ring(a, b, a.variables.x == b.variables.x) &&
              devices.all(d, d.attributes['gpu.nvidia.com'].productName == 'x')
`

// firstDocument is a document with characters of several bytes and UTF-16 units. firstUnits is its length in UTF-16 units.
const (
	firstDocument = "# é😀\n---\n"
	firstUnits    = 10
)

// completed returns the completions if the text ends after the given part, and then continues on the next line.
func completed(t *testing.T, upTo, typed string) (labels []string, answer answers.CompleteAnswer) {
	t.Helper()
	before, after, ok := strings.Cut(claimText, upTo)
	require.True(t, ok, upTo)
	_, after, _ = strings.Cut(after, "\n")
	before += upTo + typed
	answer = ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{
		Documents: firstDocument + before + "\n" + after, Offset: firstUnits + len(before), Machine: "hgx-h100",
	})
	for _, option := range answer.Options {
		labels = append(labels, option.Label)
	}
	return labels, answer
}

func TestCompleteFields(t *testing.T) {
	labels, answer := completed(t, "deviceClassName: gpu.nvidia.com\n", "        adm")
	require.Equal(t, []string{"adminAccess"}, labels)
	require.Contains(t, answer.Options[0].Info, "AdminAccess indicates")
	require.Equal(t, "adminAccess: ", answer.Options[0].Apply)
	for _, c := range []struct{ upTo, typed, want string }{
		{"spec:\n", "  ", "devices"},
		{"devices:\n", "    ", "constraints"},
		{"requests:\n", "    - ", "firstAvailable"},
		{"constraints:\n", "    - ", "distinctAttribute"},
		{"driver: celset.dev\n", "        ", "parameters"},
		{"name: ring\n", "          ", "failurePolicy"},
		{"variables:\n", "          - ", "expression"},
		{"kind: ResourceClaim\n", "", "spec"},
		{"apiVersion: resource.k8s.io/v1\n", "", "kind"},
	} {
		labels, _ := completed(t, c.upTo, c.typed)
		require.Contains(t, labels, c.want, c.upTo)
		require.NotContains(t, labels, "status")
	}
}

func TestCompleteValues(t *testing.T) {
	for _, c := range []struct{ upTo, typed, want string }{
		{"gpus\n      exactly:\n", "        deviceClassName: gp", "gpu.nvidia.com"},
		{"deviceClassName: gpu.nvidia.com\n", "        allocationMode: ", "All"},
		{"constraints:\n", "    - matchAttribute: cel", "celset.dev/ring"},
		{"constraints:\n", "    - matchAttribute: resource", "resource.kubernetes.io/pcieRoot"},
		{"apiVersion: resource.k8s.io/v1\n", "kind: Resource", "ResourceClaimTemplate"},
		{"apiVersion: celset.dev/v1alpha1\n", "          kind: CELDeviceP", "CELDevicePreference"},
		{"name: ring\n", "          failurePolicy: ", "NodeDoesNotFit"},
		{"name: ring\n", "          policy: Keep", "KeepWhole"},
		{"- opaque:\n", "        driver: cel", "celset.dev"},
	} {
		labels, _ := completed(t, c.upTo, c.typed)
		require.Contains(t, labels, c.want, c.typed)
	}
}

// TestCompleteHasSetFunctions checks that each function over sets is offered. Macros call the functions by a name with an @.
func TestCompleteHasSetFunctions(t *testing.T) {
	environment, err := device.NewEnvironment(cel.Config{})
	require.NoError(t, err)
	labels, _ := completed(t, "expression: |\n", "            devices.")
	found := 0
	for name := range environment.Functions() {
		if called, ok := strings.CutPrefix(name, "@"); ok && called != "in" && !strings.Contains(called, "_") {
			found++
			require.Contains(t, labels, strings.TrimSuffix(called, "AssociatedKeys"))
		}
	}
	require.GreaterOrEqual(t, found, 7)
}

func TestCompleteExpressions(t *testing.T) {
	for _, c := range []struct{ upTo, typed, want string }{
		{"- cel:\n", "            expression: dev", "device"},
		{"- cel:\n", "            expression: device.attr", "attributes"},
		{"- cel:\n", "            expression: device.attributes['resource.", "resource.kubernetes.io"},
		{"- cel:\n", "            expression: device.attributes['resource.kubernetes.io'].pcie", "pcieRoot"},
		{"- name: x\n", "            expression: dev", "device"},
		{"expression: |\n", "            dev", "devices"},
		{"expression: |\n", "            devices.cli", "clique"},
		{"expression: |\n", "            devices.all(d,\n              d.attributes['gpu.nvidia.com'].prod", "productName"},
		{"expression: |\n", "            siz", "size"},
	} {
		labels, answer := completed(t, c.upTo, c.typed)
		require.Contains(t, labels, c.want, c.typed)
		before, _, _ := strings.Cut(claimText, c.upTo)
		word := c.typed[strings.LastIndexAny(c.typed, " .'")+1:]
		if !strings.Contains(c.want, ".") {
			require.Equal(t, firstUnits+len(before+c.upTo+c.typed)-len(word), answer.From, c.typed)
		}
	}
}

// TestCompleteListsTheLibrary checks that the functions over sets are complete.
func TestCompleteListsTheLibrary(t *testing.T) {
	labels, _ := completed(t, "expression: |\n", "            devices.")
	for _, name := range library.Functions {
		require.Contains(t, labels, strings.TrimPrefix(name, "@"))
	}
}

func TestCompleteAnywhere(t *testing.T) {
	for offset := -1; offset <= len(claimText)+1; offset++ {
		ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{Documents: claimText, Offset: offset, Machine: "hgx-h100"})
	}
}

// TestCompleteKindAfterPosition checks that the fields of a definition depend on its kind if the kind comes after the position, and
// that a later definition has no effect.
func TestCompleteKindAfterPosition(t *testing.T) {
	preference := strings.NewReplacer("kind: CELDeviceConstraint", "kind: CELDevicePreference").Replace
	_, later, _ := strings.Cut(claimText, "    config:\n")
	for _, c := range []struct{ text, at, has, lacks string }{
		{preference(claimText), "parameters:\n", "policy", "enforcement"},
		{preference(claimText), "apiVersion: celset.dev/v1alpha1\n", "policy", "enforcement"},
		{claimText + preference(later), "parameters:\n", "enforcement", "policy"},
		{claimText, "requests:\n    - name: gpus\n", "", "policy"},
	} {
		before, after, _ := strings.Cut(c.text, c.at)
		before += c.at + "          "
		answer := ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{Documents: before + "\n" + after, Offset: len(before), Machine: "hgx-h100"})
		labels := []string{""}
		for _, option := range answer.Options {
			labels = append(labels, option.Label)
		}
		require.Contains(t, labels, c.has)
		require.NotContains(t, labels, c.lacks)
	}
}

// TestCompleteOnlyValidNames checks that names without effect at the position are not offered.
func TestCompleteOnlyValidNames(t *testing.T) {
	labels, _ := completed(t, "constraints:\n", "    - distinctAttribute: cel")
	require.Empty(t, labels, "only matchAttribute refers to constraints")
	for kind, want := range map[string][]string{"CELDeviceConstraint": {"celset.dev/b"}, "CELDevicePreference": nil, "CELNodeSetConstraint": nil} {
		text := "kind: " + kind + "\nname: b\n---\napiVersion: resource.k8s.io/v1\nkind: ResourceClaim\nspec:\n  devices:\n    constraints:\n    - matchAttribute: celset"
		var labels []string
		for _, option := range ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{Documents: text, Offset: len(text)}).Options {
			labels = append(labels, option.Label)
		}
		require.Equal(t, want, labels, kind)
	}
	text := "apiVersion: celset.dev/v1alpha1\nkind: DeviceAttributes\nspec:\n  nodeSelector:\n    matchExpressions:\n    - key: a\n      operator: "
	answer := ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{Documents: text, Offset: len(text)})
	require.Len(t, answer.Options, 4)
	require.Equal(t, "DoesNotExist", answer.Options[0].Label)
}

// TestCompleteOffsets checks that an offset out of range, or within a character, becomes the nearest valid offset.
func TestCompleteOffsets(t *testing.T) {
	for offset, want := range map[int]int{-5: 0, 0: 0, 3: 0, 5: 5, 100: 5} {
		text := "# 😀\n"
		require.Equal(t, want, ask[answers.CompleteAnswer](t, empty(), answers.Complete, answers.CompleteQuestion{Documents: text, Offset: offset}).From, offset)
	}
}
