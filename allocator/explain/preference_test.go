// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package explain_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/allocator"
	"github.com/celset/celset/allocator/explain"
	"github.com/celset/celset/apis/celset/v1alpha1"
)

const (
	indices = "devices.map(d, d.attributes['" + driver + "'].index)"
	near    = indices + ".min() - " + indices + ".max()"
)

func preferenceOf(name, expression string) resourceapi.DeviceConfiguration {
	raw, err := json.Marshal(&v1alpha1.CELDevicePreference{
		TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.SchemeGroupVersion.String(), Kind: v1alpha1.PreferenceKind}, Name: name, Type: v1alpha1.PreferenceTypeExpression, Expression: expression,
	})
	if err != nil {
		panic(err)
	}
	return configuration(raw)
}

// preferring adds a preference with an expression to a claim.
func preferring(claim *resourceapi.ResourceClaim, name, expression string) *resourceapi.ResourceClaim {
	claim.Spec.Devices.Config = append(claim.Spec.Devices.Config, resourceapi.DeviceClaimConfiguration{DeviceConfiguration: preferenceOf(name, expression)})
	return claim
}

func deviceNames(of ...string) []string {
	for i := range of {
		of[i] = driver + "/" + node.Name + "/mla-" + of[i]
	}
	return of
}

// TestScore checks the score of a claim with the devices 0, 3 and 6 of a ring. Another claim has the devices 2, 4 and 7.
func TestScore(t *testing.T) {
	claim := preferring(preferring(owning("mine", 0, 3, 6), "near", near), "first", "-("+indices+".sum())")
	p := problem(t, ring(t, 8))
	p.Allocated = []*resourceapi.ResourceClaim{owning("other", 2, 4, 7), claim}
	before := claim.DeepCopy()
	got, err := p.Score(t.Context(), []*v1.Node{{ObjectMeta: metav1.ObjectMeta{Name: "node-0"}}, node}, claim)
	require.NoError(t, err)
	require.Equal(t, before, claim)
	require.Equal(t, &explain.Score{
		Claim: "default/mine", Node: node.Name,
		Has:  []explain.Value{{Name: "near", Value: -6}, {Name: "first", Value: -9}},
		Free: explain.Best{Outcome: allocator.PreferenceBest, Values: []explain.Value{{Name: "near", Value: -3}, {Name: "first", Value: -4}}, Devices: deviceNames("0", "1", "3")},
		Ever: explain.Best{Outcome: allocator.PreferenceBest, Values: []explain.Value{{Name: "near", Value: -2}, {Name: "first", Value: -3}}, Devices: deviceNames("0", "1", "2")},
	}, got)
}

func TestScoreOfWhatHasChanged(t *testing.T) {
	nodes := []*v1.Node{node}
	claim := preferring(owning("mine", 0, 3), "near", indices+".sum()")
	p := problem(t, ring(t, 8))
	none, err := p.Score(t.Context(), nodes, owning("gone", 0, 12))
	require.NoError(t, err)
	require.Nil(t, none, "no node has the device")

	p.Slices[0].Spec.Devices[3].Attributes["index"] = resourceapi.DeviceAttribute{StringValue: new(string)}
	score, err := p.Score(t.Context(), nodes, claim)
	require.ErrorContains(t, err, "preference near")
	require.ErrorContains(t, err, "no such overload")
	require.Contains(t, score.Has[0].Error, "no such overload")

	claim = preferring(owning("mine", 0, 3), "near", "1")
	claim.Spec.Devices.Requests[0].Exactly.Count = 9
	score, err = p.Score(t.Context(), nodes, claim)
	require.NoError(t, err)
	require.Equal(t, explain.Best{Reason: "request mla: too few matching devices are free (8 of 9 requested)"}, score.Ever)

	_, err = p.Score(t.Context(), nodes, preferring(owning("mine", 0), "near", ""))
	require.ErrorContains(t, err, "ResourceClaim default/mine: spec.devices.config[0].opaque.parameters.expression: Required value")
}

// TestPreferencesDoNotAffectObstacles checks that obstacles are explained even if preferences fail on every set.
func TestPreferencesDoNotAffectObstacles(t *testing.T) {
	const fails = "devices.map(d, d.attributes['" + driver + "'].unknown).sum()"
	own := problem(t, ring(t, 8), preferring(withConstraint(wanting("c", 2), "far", "devices.size() == 2 && "+indices+".max() > 8"), "p", fails))
	ofClass := problem(t, ring(t, 8), withConstraint(wanting("c", 2), "far", "devices.size() == 2 && "+indices+".max() > 8"))
	class, err := ofClass.Classes.Get(driver)
	require.NoError(t, err)
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{{DeviceConfiguration: preferenceOf("p", fails)}}
	for _, p := range []*explain.Problem{own, ofClass} {
		got, err := p.Node(t.Context(), node)
		require.NoError(t, err)
		require.False(t, got.Fits)
		require.Equal(t, 24, got.Unmet.Column)
		require.True(t, got.Never)
	}
	require.Len(t, class.Spec.Config, 1, "it is not written to")
	require.Len(t, own.Claims[0].Spec.Devices.Config, 2)
}

// TestScoreOfAPolicy checks the score of a claim with the devices 0 and 3 in a ring of pairs. Another claim has device 4. The
// first claim breaks two pairs. With device 5 and one more device it would break one pair.
func TestScoreOfAPolicy(t *testing.T) {
	const pair = "devices.all(d, devices.exists(o, o != d && d.attributes['" + driver + "'].index / 2 == o.attributes['" + driver + "'].index / 2))"
	p := problem(t, ring(t, 8))
	class, err := p.Classes.Get(driver)
	require.NoError(t, err)
	class.Spec.Config = []resourceapi.DeviceClassConfiguration{
		{DeviceConfiguration: withConstraint(wanting("any", 2), "pair", pair).Spec.Devices.Config[0].DeviceConfiguration},
	}
	shape := allocator.Shape{Class: driver, Constraint: "pair", Count: 2}
	p.Options = append(p.Options, allocator.WithShapes([]allocator.Shape{shape}))
	claim := preferring(owning("mine", 0, 3), "high", indices+".min()")
	policy := preferenceOf("whole", "")
	policy.Opaque.Parameters.Raw = []byte(`{"apiVersion":"celset.dev/v1alpha1","kind":"CELDevicePreference","name":"whole","type":"Policy","policy":"KeepWhole"}`)
	claim.Spec.Devices.Config = append([]resourceapi.DeviceClaimConfiguration{{DeviceConfiguration: policy}}, claim.Spec.Devices.Config...)
	p.Allocated = []*resourceapi.ResourceClaim{owning("other", 4), claim}
	got, err := p.Score(t.Context(), []*v1.Node{node}, claim)
	require.NoError(t, err)
	lost := func(lost, left int) []allocator.ShapeLoss {
		return []allocator.ShapeLoss{{Shape: shape, Lost: lost, Left: left}}
	}
	require.Equal(t, []explain.Value{{Name: "whole", Value: -2, Losses: lost(2, 1)}, {Name: "high", Value: 0}}, got.Has)
	require.Equal(t, []explain.Value{{Name: "whole", Value: -1, Losses: lost(1, 2)}, {Name: "high", Value: 6}}, got.Free.Values)
	require.Equal(t, []explain.Value{{Name: "whole", Value: -1, Losses: lost(1, 3)}, {Name: "high", Value: 6}}, got.Ever.Values)

	// If the allocator fails, the values are evaluated one by one, and each failing value has an error.
	claim = preferring(claim, "wrong", "nothing")
	got, err = p.Score(t.Context(), []*v1.Node{node}, claim)
	require.ErrorContains(t, err, "preference wrong")
	require.Len(t, got.Has, 3)
	require.Contains(t, got.Has[0].Error, "undeclared reference to 'nothing'")
	require.Equal(t, explain.Value{Name: "high"}, got.Has[1])
	require.Contains(t, got.Has[2].Error, "undeclared reference to 'nothing'")
}
