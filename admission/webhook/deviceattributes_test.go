// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/celset/celset/apis/celset/v1alpha1"
)

func TestDeviceAttributes(t *testing.T) {
	empty := &reader{t: t}
	server := newServer(t, empty, empty)
	of := func(expression string) *v1alpha1.DeviceAttributes {
		return &v1alpha1.DeviceAttributes{
			TypeMeta:   metav1.TypeMeta{APIVersion: "celset.dev/v1alpha1", Kind: "DeviceAttributes"},
			ObjectMeta: metav1.ObjectMeta{Name: "grid"},
			Spec: v1alpha1.DeviceAttributesSpec{
				Driver: "chip.example.com", Attributes: []v1alpha1.ComputedAttribute{{Name: "x", Expression: expression}},
			},
		}
	}
	require.True(t, ask(t, server, AttributesPath, reviewOf(t, of("device.attributes['chip.example.com'].index % 4"), nil)).Allowed)
	wrong := of("device.index % 4")
	answer := ask(t, server, AttributesPath, reviewOf(t, wrong, nil))
	require.False(t, answer.Allowed)
	require.Contains(t, answer.Result.Message, `DeviceAttributes.celset.dev "grid" is invalid: spec: Invalid value: spec.attributes[0].expression of attribute x: `+
		"ERROR: <input>:1:7: undefined field 'index'")

	relabelled := wrong.DeepCopy()
	relabelled.Labels = map[string]string{"a": "b"}
	require.True(t, ask(t, server, AttributesPath, reviewOf(t, relabelled, wrong)).Allowed, "the spec does not change")
	reselected := wrong.DeepCopy()
	reselected.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	require.True(t, ask(t, server, AttributesPath, reviewOf(t, reselected, wrong)).Allowed, "the mistake was stored before")
	require.True(t, ask(t, server, AttributesPath, reviewOf(t, of("1"), wrong)).Allowed)
	require.False(t, ask(t, server, AttributesPath, reviewOf(t, wrong, of("1"))).Allowed)
	reserved := of("1")
	reserved.Spec.Domain = v1alpha1.AttributeDomain
	require.Contains(t, ask(t, server, AttributesPath, reviewOf(t, reserved, nil)).Result.Message, `spec.domain "celset.dev" is reserved`)
}
