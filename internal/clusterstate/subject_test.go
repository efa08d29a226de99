// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/clusterstate"
)

func subjects() *clusterstate.State {
	pod := &corev1.Pod{ObjectMeta: named("ns", "train"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "own", ResourceClaimName: ptr.To("mine")},
		{Name: "made", ResourceClaimTemplateName: ptr.To("t")},
		{Name: "yet", ResourceClaimTemplateName: ptr.To("t")},
		{Name: "needless", ResourceClaimTemplateName: ptr.To("t")},
	}}}
	pod.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{
		{Name: "made", ResourceClaimName: ptr.To("train-made-abcde")}, {Name: "needless"},
	}
	lost := &corev1.Pod{ObjectMeta: named("ns", "lost"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "x", ResourceClaimName: ptr.To("nobody")},
	}}}
	lostToo := &corev1.Pod{ObjectMeta: named("ns", "lost-too"), Spec: corev1.PodSpec{ResourceClaims: []corev1.PodResourceClaim{
		{Name: "x", ResourceClaimTemplateName: ptr.To("nothing")},
	}}}
	return clusterstate.New(&clusterstate.Objects{
		Pods: []*corev1.Pod{pod, lost, lostToo},
		Claims: []*resourceapi.ResourceClaim{
			owning("mine", resourceapi.DeviceRequestAllocationResult{Device: "a"}),
			{ObjectMeta: named("ns", "train-made-abcde")}, {ObjectMeta: named("ns", "train")}, {ObjectMeta: named("other", "far")},
		},
		Templates: []*resourceapi.ResourceClaimTemplate{{
			ObjectMeta: named("ns", "t"), Spec: resourceapi.ResourceClaimTemplateSpec{Spec: wants("r")},
		}},
	})
}

func TestClaimsOfAPod(t *testing.T) {
	state := subjects()
	subject, err := state.Subject("pod/train", "ns")
	require.NoError(t, err)
	require.Equal(t, "Pod ns/train", subject.String())
	require.Equal(t, []string{"ns/mine", "ns/train-made-abcde", "ns/train-yet"}, names(subject.Claims))
	require.Equal(t, []string{"ns/train-made-abcde", "ns/train-yet"}, names(subject.Pending()))
	require.Equal(t, wants("r"), subject.Claims[2].Spec)
	subject.Claims[2].Spec.Devices.Requests[0].Name = "changed"
	require.Equal(t, wants("r"), state.Templates[0].Spec.Spec, "a claim is a copy")
}

func TestSubject(t *testing.T) {
	state := subjects()
	for argument, want := range map[string]string{
		"claim/train":             "ResourceClaim ns/train",
		"resourceclaims/mine":     "ResourceClaim ns/mine",
		"t":                       "ResourceClaim ns/t",
		"ResourceClaimTemplate/t": "ResourceClaim ns/t",
		"resourceclaim.resource.k8s.io/train-made-abcde": "ResourceClaim ns/train-made-abcde",
	} {
		subject, err := state.Subject(argument, "ns")
		require.NoError(t, err, argument)
		require.Equal(t, want, subject.String())
	}
	for argument, want := range map[string]string{
		"train":        "several objects have the name \"train\"",
		"far":          "there is no pod, claim or template \"far\" in namespace \"ns\"",
		"node/n":       "must be NAME or pod/NAME, claim/NAME, template/NAME",
		"pod/":         "must be NAME or",
		"pod/lost":     "pod ns/lost: there is no ResourceClaim \"nobody\"",
		"pod/lost-too": "pod ns/lost-too: there is no ResourceClaimTemplate \"nothing\"",
		"":             "there are 3 pods, pending claims and templates",
	} {
		_, err := state.Subject(argument, "ns")
		require.ErrorContains(t, err, want, argument)
	}
}

// Without an argument the only pod is meant, or else the only claim that has no devices.
func TestTheOnlySubject(t *testing.T) {
	objects := &clusterstate.Objects{Claims: []*resourceapi.ResourceClaim{
		owning("mine", resourceapi.DeviceRequestAllocationResult{Device: "a"}), {ObjectMeta: named("ns", "pending")},
	}}
	subject, err := clusterstate.New(objects).Subject("", "elsewhere")
	require.NoError(t, err)
	require.Equal(t, "ResourceClaim ns/pending", subject.String())
	objects.Pods = []*corev1.Pod{{ObjectMeta: named("ns", "p")}}
	subject, err = clusterstate.New(objects).Subject("", "elsewhere")
	require.NoError(t, err)
	require.Equal(t, "Pod ns/p", subject.String())
}
