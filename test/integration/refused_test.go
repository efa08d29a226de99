// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubefeatures "k8s.io/kubernetes/pkg/features"

	"github.com/celset/celset/apis/celset/v1alpha1"
	"github.com/celset/celset/internal/testing/minor"
)

// TestMistakesInConstraintsAreReported goes through what the specification calls
// an error before any device is looked at. The last claim shows that the devices
// would have been there.
func TestMistakesInConstraintsAreReported(t *testing.T) {
	t.Parallel()
	l := newLab(t, "mistakes", 1)
	driver := l.ring(t, 8).Drivers()[0]
	right := contiguous(driver, 3)
	one, other := "one."+l.namespace, "other."+l.namespace
	l.createNamedClass(t, one, driver, definition("ring3", right))
	l.createNamedClass(t, other, driver, definition("ring3", "true"))
	twice := "twice." + l.namespace
	l.createNamedClass(t, twice, driver, definition("ring3", right), definition("ring3", right))

	mla := request("mla", driver, 3)
	const parametersPath = "spec.devices.config[0].opaque.parameters"
	for name, tc := range map[string]struct {
		claim []part
		want  []string
	}{
		"not-defined": {
			claim: []part{mla, refer("ring3"), define("ring4", right)},
			want: []string{
				`spec.devices.constraints[0].matchAttribute: Not found: "celset.dev/ring3"`,
				"in spec.devices.config of the ResourceClaim, spec.config of DeviceClass " + driver,
			},
		},
		"defined-twice-in-claim": {
			claim: []part{mla, constrained("ring3", right), define("ring3", right)},
			want:  []string{`spec.devices.config[1].opaque.parameters.name: Duplicate value: "ring3": already defined at spec.devices.config[0]`},
		},
		"defined-twice-in-class": {
			claim: []part{request("mla", twice, 3), refer("ring3")},
			want: []string{
				"spec.devices.constraints[0].matchAttribute",
				"DeviceClass " + twice + `: spec.config[1].opaque.parameters.name: Duplicate value: "ring3"`,
			},
		},
		"classes-disagree": {
			claim: []part{request("a", one, 1), request("b", other, 2), refer("ring3")},
			want:  []string{fmt.Sprintf("DeviceClass %s spec.config[0] and DeviceClass %s spec.config[0] define it differently", one, other)},
		},
		"distinct-attribute": {
			claim: []part{mla, define("ring3", right), distinctAttribute("celset.dev/ring3")},
			want:  []string{"spec.devices.constraints[0].distinctAttribute: Forbidden", "use matchAttribute: celset.dev/ring3"},
		},
		"unknown-kind": {
			claim: []part{mla, refer("ring3"), configure(parameters(map[string]string{"apiVersion": "celset.dev/v1alpha1", "kind": "CELConstraint"}))},
			want:  []string{parametersPath + `.kind: Unsupported value: "CELConstraint": supported values: "CELDeviceConstraint", "CELDevicePreference"`},
		},
		"unknown-version": {
			claim: []part{mla, refer("ring3"), configure(parameters(map[string]string{"apiVersion": "celset.dev/v9", "kind": v1alpha1.Kind}))},
			want:  []string{parametersPath + `.apiVersion: Unsupported value: "celset.dev/v9": supported values: "celset.dev/v1alpha1"`},
		},
		"unknown-field": {
			claim: []part{mla, refer("ring3"), configure(parameters(map[string]string{
				"apiVersion": "celset.dev/v1alpha1", "kind": v1alpha1.Kind, "name": "ring3", "expresion": right,
			}))},
			want: []string{parametersPath + ".expresion: Invalid value: unknown field"},
		},
		"empty-expression": {
			claim: []part{mla, constrained("ring3", " ")},
			want:  []string{parametersPath + ".expression: Required value"},
		},
		"does-not-compile": {
			claim: []part{mla, constrained("ring3", "size(devices) == 3 &&\ndevices.all(d, d.index < 3)")},
			want: []string{
				"constraint ring3 (ResourceClaim " + l.namespace + "/does-not-compile spec.devices.config[0])",
				"<input>:2:17: undefined field 'index'",
				"\n | devices.all(d, d.index < 3)\n | ................^",
			},
		},
		"not-bool": {
			claim: []part{mla, constrained("ring3", "size(devices)")},
			want:  []string{"<input>:1:1: the expression must return bool, it returns int", "\n | size(devices)\n | ^"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "distinct-attribute" {
				minor.Needs(t, kubefeatures.DRAConsumableCapacity)
			}
			l.run(t, name, celsetProfile, tc.claim...)
			l.requireRefused(t, name, append(tc.want, l.namespace+"/"+name)...)
		})
	}
	t.Run("a-right-one", func(t *testing.T) {
		l.run(t, "right", celsetProfile, mla, constrained("ring3", right), define("unused", "false"))
		l.requireRunning(t, "right")
	})
}

// TestAPIServerRefusesExpressionsOverTheLimit is about the one mistake that never
// gets to the scheduler: the API server's limit for parameters is ours for
// expressions.
func TestAPIServerRefusesExpressionsOverTheLimit(t *testing.T) {
	t.Parallel()
	l := newLab(t, "too-long", 0)
	long := "true // " + strings.Repeat("x", v1alpha1.MaxExpressionLength)
	_, err := client().ResourceV1().ResourceClaims(l.namespace).Create(t.Context(),
		claimOf("long", request("mla", "any", 1), constrained("long", long)), metav1.CreateOptions{})
	require.True(t, apierrors.IsInvalid(err), "got %v", err)
	require.ErrorContains(t, err, "spec.devices.config[0].opaque.parameters: Too long")
}

// TestExpressionsThatFailAbortTheAllocation checks that an expression which can't
// tell is neither true nor false, and that a claim which replaces the wrong one is
// served.
func TestExpressionsThatFailAbortTheAllocation(t *testing.T) {
	t.Parallel()
	l := newLab(t, "failures", 1)
	node := l.nodes[0]
	ring := newRing(t, l.family("mla"), 8)
	delete(ring.Devices[2].Attributes, "index")
	driver := ring.Drivers()[0]
	l.publish(t, ring, node)
	l.createClass(t, driver)
	mla := request("mla", driver, 3)
	set := fmt.Sprintf("devices [%[1]s/%[2]s/mla-0, %[1]s/%[2]s/mla-1, %[1]s/%[2]s/mla-2]", driver, node)

	t.Run("missing attribute", func(t *testing.T) {
		l.run(t, "missing", celsetProfile, mla, constrained("ring3", contiguous(driver, 3)))
		l.requireRefused(t, "missing", "claim "+l.namespace+"/missing, constraint ring3, node "+node, set, "no such key: index")
		l.deletePod(t, "missing")
		require.NoError(t, client().ResourceV1().ResourceClaims(l.namespace).Delete(t.Context(), "missing", metav1.DeleteOptions{}))
	})
	t.Run("cost limit", func(t *testing.T) {
		expensive := "true"
		for level := range 12 {
			expensive = fmt.Sprintf("devices.all(d%d, %s)", level, expensive)
		}
		l.run(t, "expensive", celsetProfile, mla, constrained("all", expensive))
		l.requireRefused(t, "expensive", "claim "+l.namespace+"/expensive, constraint all, node "+node, set,
			"one evaluation exceeds the cost limit of 1000000")
	})
	t.Run("guarded attribute", func(t *testing.T) {
		guard := fmt.Sprintf("devices.all(d, has(d.attributes[%q].index))", driver)
		l.run(t, "missing-nothing", celsetProfile, mla, constrained("ring3", guard))
		l.requireRunning(t, "missing-nothing")
		require.Equal(t, []string{"mla-0", "mla-1", "mla-3"}, l.devicesOf(t, "missing-nothing"))
	})
}
