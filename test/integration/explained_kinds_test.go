// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	admissionapi "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
)

// An explainLab creates the pods of the test. Each pod has its own devices, so that no pod affects another one.
type explainLab struct {
	*lab
	*rand.Rand
	number int
}

// The indices of the lab's nodes: two nodes without restrictions, one with a taint, and one that is cordoned.
const (
	open, open2, tainted, cordoned = 0, 1, 2, 3
	taintKey                       = "example.com/reserved"
	refusedLabel                   = "example.com/refused"
	// ringSize is the number of devices that ring publishes on each node.
	ringSize = 4
)

func newExplainLab(t *testing.T, random *rand.Rand) *explainLab {
	l := &explainLab{lab: newLab(t, "explained", 4), Rand: random}
	l.changeNode(t, tainted, func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoSchedule})
	})
	l.changeNode(t, cordoned, func(n *corev1.Node) { n.Spec.Unschedulable = true })
	policies, bindings := client().AdmissionregistrationV1().ValidatingAdmissionPolicies(), client().AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	env.Create(t, policies, &admissionapi.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace}, Spec: admissionapi.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionapi.MatchResources{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: l.Namespace}},
			ResourceRules: []admissionapi.NamedRuleWithOperations{{RuleWithOperations: admissionapi.RuleWithOperations{
				Operations: []admissionapi.OperationType{admissionapi.Create},
				Rule:       admissionapi.Rule{APIGroups: []string{resourceapi.GroupName}, APIVersions: []string{"*"}, Resources: []string{"resourceclaims"}},
			}}},
		},
		Validations: []admissionapi.Validation{{Expression: "!has(object.metadata.labels) || !('" + refusedLabel + "' in object.metadata.labels)", Message: "claims with this label are refused"}},
	}})
	env.Create(t, bindings, &admissionapi.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: l.Namespace}, Spec: admissionapi.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: l.Namespace, ValidationActions: []admissionapi.ValidationAction{admissionapi.Deny},
	}})
	env.Eventually(t, "the scheduler says what it serves", func(ctx context.Context) (string, error) {
		leases, err := client().CoordinationV1().Leases(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return "", err
		}
		for i := range leases.Items {
			if leases.Items[i].Annotations["celset.dev/serves"] != "" {
				return "", nil
			}
		}
		return "no Lease has the annotation", nil
	})
	return l
}

func (l *explainLab) changeNode(t *testing.T, at int, change func(*corev1.Node)) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		node, err := client().CoreV1().Nodes().Get(t.Context(), l.Nodes[at], metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(node)
		_, err = client().CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{})
		return err
	}))
}

func (l *explainLab) name() string { return fmt.Sprint("p", l.number) }

// ring publishes devices for one pod on the given nodes, and returns their class.
func (l *explainLab) ring(t *testing.T, nodes ...int) (class string) {
	t.Helper()
	return l.editedRing(t, func(*resourceapi.Device) {}, nodes...)
}

// editedRing is like ring, but edit changes each device before it is published.
func (l *explainLab) editedRing(t *testing.T, edit func(*resourceapi.Device), nodes ...int) (class string) {
	t.Helper()
	ring, err := topology.NewRing(l.Family(fmt.Sprint("m", l.number)), ringSize)
	require.NoError(t, err)
	for _, at := range nodes {
		slices, err := ring.ResourceSlices(l.Nodes[at])
		require.NoError(t, err)
		for _, slice := range slices {
			for i := range slice.Spec.Devices {
				edit(&slice.Spec.Devices[i])
			}
			l.CreateSlice(t, slice)
		}
	}
	class = ring.Drivers()[0]
	l.CreateClass(t, class)
	return class
}

// parts returns a request for count devices, sometimes with a constraint.
func (l *explainLab) parts(class string, count int64) []env.Part {
	parts := []env.Part{env.Request("r", class, count)}
	if l.IntN(3) > 0 {
		parts = append(parts, env.Constrained("any", fmt.Sprintf("size(devices) == %d", count)))
	}
	return parts
}

// fitting returns a pod whose claim fits on the nodes without restrictions.
func (l *explainLab) fitting(t *testing.T) *corev1.Pod {
	t.Helper()
	return l.podWith(t, l.parts(l.ring(t, open, open2), int64(1+l.IntN(ringSize)))...)
}

// podWith returns a pod with one claim. The pod refers to an existing claim or to a template, by chance.
func (l *explainLab) podWith(t *testing.T, parts ...env.Part) *corev1.Pod {
	t.Helper()
	if l.IntN(2) == 0 {
		l.CreateClaim(t, l.name(), parts...)
		return l.here(env.Pod(l.name(), env.CelsetProfile, l.name()))
	}
	l.template(t, nil, parts...)
	return l.here(env.PodFrom(l.name(), env.CelsetProfile, l.name()))
}

func (l *explainLab) template(t *testing.T, labels map[string]string, parts ...env.Part) {
	t.Helper()
	claim := env.Claim(l.name(), parts...)
	env.Create(t, client().ResourceV1().ResourceClaimTemplates(l.Namespace), &resourceapi.ResourceClaimTemplate{
		ObjectMeta: metav1.ObjectMeta{Name: l.name()},
		Spec:       resourceapi.ResourceClaimTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: claim.Spec},
	})
}

func (l *explainLab) here(pod *corev1.Pod) *corev1.Pod {
	pod.Namespace = l.Namespace
	pod.Spec.NodeSelector = map[string]string{env.LabLabel: l.Namespace}
	return pod
}

func (l *explainLab) on(pod *corev1.Pod, at int) *corev1.Pod {
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: l.Nodes[at]}
	return pod
}

// consumers returns n entries for a claim's status.reservedFor. They are not pods, because kube-controller-manager would remove
// pods that don't exist.
func consumers(n int) (all []resourceapi.ResourceClaimConsumerReference) {
	for i := range n {
		name := fmt.Sprint("consumer-", i)
		all = append(all, resourceapi.ResourceClaimConsumerReference{APIGroup: "example.com", Resource: "jobs", Name: name, UID: uid(name)})
	}
	return all
}

// changeStatus changes the status of a claim.
func (l *explainLab) changeStatus(t *testing.T, name string, change func(*resourceapi.ResourceClaim)) {
	t.Helper()
	require.NoError(t, retry.RetryOnConflict(retry.DefaultRetry, func() error {
		claim := l.Claim(t, name)
		change(claim)
		_, err := client().ResourceV1().ResourceClaims(l.Namespace).UpdateStatus(t.Context(), claim, metav1.UpdateOptions{})
		return err
	}))
}

func requests(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// sidecar returns a container that runs as long as the pod and requests the resources.
func sidecar(list corev1.ResourceList) corev1.Container {
	return corev1.Container{
		Name: "sidecar", Image: "registry.k8s.io/pause:3.10", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways),
		Resources: corev1.ResourceRequirements{Requests: list},
	}
}
