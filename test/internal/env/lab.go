// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/internal/ledger"
)

// LabLabel is a label of the lab's nodes, and in the node selector of its pods. Its value is the namespace of the lab.
const LabLabel = "celset.dev/lab"

// cleanupTimeout limits the requests that delete the objects of a lab.
const cleanupTimeout = 2 * time.Minute

// A Lab is the environment of one test; several labs can share a control plane. Its namespace has a generated name. The names
// of the lab's cluster-scoped objects contain this name.
type Lab struct {
	*Env
	Namespace string
	Nodes     []string
}

// NewLab creates a namespace and n nodes. Objects that are created through the lab are deleted when the test ends.
func (e *Env) NewLab(t testing.TB, name string, n int) *Lab {
	t.Helper()
	return e.NewLabeledLab(t, name, n, nil)
}

// NewLabeledLab is like NewLab with labels. labels returns the labels of the i-th node.
func (e *Env) NewLabeledLab(t testing.TB, name string, n int, labels func(i int) map[string]string) *Lab {
	t.Helper()
	l := &Lab{Env: e}
	l.Namespace = Create(t, e.Client().CoreV1().Namespaces(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: name + "-", Labels: map[string]string{resourceapi.DRAAdminNamespaceLabelKey: "true"},
	}}).Name
	var err error
	l.Nodes, err = controlplane.CreateNodes(t.Context(), e.Client(), n, controlplane.NodeOptions{
		Prefix: l.Namespace, Labels: map[string]string{LabLabel: l.Namespace}, LabelsOf: labels, Static: e.static,
	})
	require.NoError(t, err)
	CleanUp(t, func(ctx context.Context) error {
		return e.Client().CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: LabLabel + "=" + l.Namespace})
	})
	return l
}

// CleanUp calls deletion when the test has ended. It is no error if the object does not exist any more.
func CleanUp(t testing.TB, deletion func(context.Context) error) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), cleanupTimeout)
		defer cancel()
		if err := deletion(ctx); err != nil && !apierrors.IsNotFound(err) {
			t.Errorf("clean up: %v", err)
		}
	})
}

// Objects is a typed client for the objects of one kind.
type Objects[T metav1.Object] interface {
	Create(ctx context.Context, object T, options metav1.CreateOptions) (T, error)
	Delete(ctx context.Context, name string, options metav1.DeleteOptions) error
}

// Create creates an object and deletes it after the test. It returns the stored object.
func Create[T metav1.Object](t testing.TB, in Objects[T], object T) T {
	t.Helper()
	created, err := in.Create(t.Context(), object, metav1.CreateOptions{})
	require.NoError(t, err)
	CleanUp(t, func(ctx context.Context) error { return in.Delete(ctx, created.GetName(), metav1.DeleteOptions{}) })
	return created
}

// Publish creates the ResourceSlices for the devices on each node.
func (e *Env) Publish(t testing.TB, devices topology.Topology, nodes ...string) {
	t.Helper()
	for _, node := range nodes {
		slices, err := devices.ResourceSlices(node)
		require.NoError(t, err)
		for _, slice := range slices {
			e.CreateSlice(t, slice)
		}
	}
}

// CreateSlice creates a ResourceSlice.
func (e *Env) CreateSlice(t testing.TB, slice *resourceapi.ResourceSlice) {
	t.Helper()
	Create(t, e.Client().ResourceV1().ResourceSlices(), slice)
}

// CreateClass creates a class that selects the devices of a driver and has the driver's name. config is the configuration of
// the class.
func (e *Env) CreateClass(t testing.TB, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	e.CreateNamedClass(t, driver, driver, config...)
}

// CreateNamedClass is like CreateClass, but the class has the given name.
func (e *Env) CreateNamedClass(t testing.TB, name, driver string, config ...resourceapi.DeviceConfiguration) {
	t.Helper()
	spec := ClassOf(driver)
	for _, c := range config {
		spec.Config = append(spec.Config, resourceapi.DeviceClassConfiguration{DeviceConfiguration: c})
	}
	e.CreateClassWithSpec(t, name, spec)
}

// ClassOf returns the spec of a class that selects the devices of a driver.
func ClassOf(driver string) resourceapi.DeviceClassSpec {
	return resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{Selector("device.driver == '" + driver + "'")}}
}

// CreateClassWithSpec creates a class with the spec.
func (e *Env) CreateClassWithSpec(t testing.TB, name string, spec resourceapi.DeviceClassSpec) {
	t.Helper()
	Create(t, e.Client().ResourceV1().DeviceClasses(), &resourceapi.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec})
}

// Family returns a driver name that no other lab has, and a prefix for the names of its devices.
func (l *Lab) Family(prefix string) topology.Family {
	return topology.Family{Driver: prefix + "." + l.Namespace + ".example.com", Prefix: prefix}
}

// Ring publishes a ring of n devices on each node of the lab, and creates a class for them with the configuration.
func (l *Lab) Ring(t testing.TB, n int, config ...resourceapi.DeviceConfiguration) topology.Topology {
	t.Helper()
	ring, err := topology.NewRing(l.Family("mla"), n)
	require.NoError(t, err)
	l.Publish(t, ring, l.Nodes...)
	l.CreateClass(t, ring.Drivers()[0], config...)
	return ring
}

// CreateClaim creates a claim and returns the stored claim.
func (l *Lab) CreateClaim(t testing.TB, name string, parts ...Part) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Create(t.Context(), Claim(name, parts...), metav1.CreateOptions{})
	require.NoError(t, err)
	return claim
}

// CreatePod creates a pod that uses the claims and can run on any node of the lab.
func (l *Lab) CreatePod(t testing.TB, name, profile string, claims ...string) {
	t.Helper()
	pod := Pod(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{LabLabel: l.Namespace}
	l.CreatePodAsIs(t, pod)
}

// CreatePodOn creates a pod that uses the claims and can run only on the given node.
func (l *Lab) CreatePodOn(t testing.TB, node, name, profile string, claims ...string) {
	t.Helper()
	pod := Pod(name, profile, claims...)
	pod.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	l.CreatePodAsIs(t, pod)
}

// CreatePodAsIs creates the pod without changes, except for the namespace.
func (l *Lab) CreatePodAsIs(t testing.TB, pod *corev1.Pod) {
	t.Helper()
	_, err := l.pods().Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
}

// Run creates a claim, and a pod of the same name that uses it.
func (l *Lab) Run(t testing.TB, name, profile string, parts ...Part) {
	t.Helper()
	l.CreateClaim(t, name, parts...)
	l.CreatePod(t, name, profile, name)
}

// Occupy creates a pod that uses the named devices of a node, waits until it runs, and returns its name.
func (l *Lab) Occupy(t testing.TB, node string, devices topology.Topology, names ...string) string {
	t.Helper()
	return l.OccupyAs(t, StockProfile, node, devices, names...)
}

// OccupyAs is like Occupy, but the pod has the given profile.
func (l *Lab) OccupyAs(t testing.TB, profile, node string, devices topology.Topology, names ...string) string {
	t.Helper()
	selected, err := devices.Select(names)
	require.NoError(t, err)
	var requests []Part
	for _, device := range selected {
		requests = append(requests, One(device))
	}
	name := node + "-" + names[0]
	l.CreateClaim(t, name, requests...)
	l.CreatePodOn(t, node, name, profile, name)
	l.RequireRunning(t, name)
	require.ElementsMatch(t, names, l.DevicesOf(t, name))
	return name
}

// DeletePod deletes a pod with a grace period of zero.
func (l *Lab) DeletePod(t testing.TB, name string) {
	t.Helper()
	options := metav1.DeleteOptions{}
	if l.static {
		options.GracePeriodSeconds = ptr.To[int64](0)
	}
	require.NoError(t, l.pods().Delete(t.Context(), name, options))
}

func (l *Lab) pods() typedcorev1.PodInterface { return l.Client().CoreV1().Pods(l.Namespace) }

// KeepLedger starts a ledger of the claims in a namespace. It records until the test ends or stop is called. If restarted is
// set, the ledger watches etcd, because the test restarts the API server.
func (e *Env) KeepLedger(t testing.TB, namespace string, restarted bool, judge func(*resourceapi.ResourceClaim) string) (l *ledger.Ledger, stop func()) {
	t.Helper()
	return e.KeepLedgerOf(t, namespace, restarted, ledger.New(judge))
}

// KeepLedgerOf is like KeepLedger, but continues an existing ledger.
func (e *Env) KeepLedgerOf(t testing.TB, namespace string, restarted bool, l *ledger.Ledger) (_ *ledger.Ledger, stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	follow := func() (<-chan struct{}, error) { return l.Follow(ctx, e.Client(), namespace, "") }
	if restarted {
		follow = func() (<-chan struct{}, error) {
			return l.FollowStore(ctx, e.Running(controlplane.Etcd).Endpoint(), namespace)
		}
	}
	done, err := follow()
	require.NoError(t, err)
	stop = func() {
		cancel()
		<-done
	}
	t.Cleanup(stop)
	return l, stop
}

// EventuallyPod waits until wanted returns true for the pod. On failure it shows the pod, its claims and its events.
func (l *Lab) EventuallyPod(t testing.TB, name, what string, wanted func(context.Context, *corev1.Pod) (bool, error)) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{}
	err := wait.PollUntilContextTimeout(t.Context(), pollPeriod, Patience, true, func(ctx context.Context) (bool, error) {
		current, err := l.pods().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		pod = current
		return wanted(ctx, pod)
	})
	if err != nil {
		t.Fatalf("pod %s/%s does not become %s: %v\n%s", l.Namespace, name, what, err, l.story(t, pod))
	}
	return pod
}

// story returns the pod's status, its claims and its events as text, to explain a failure.
func (l *Lab) story(t testing.TB, pod *corev1.Pod) string {
	var story strings.Builder
	fmt.Fprintf(&story, "phase %s, node %q\n", pod.Status.Phase, pod.Spec.NodeName)
	for _, c := range pod.Status.Conditions {
		fmt.Fprintf(&story, "condition %s=%s %s: %s\n", c.Type, c.Status, c.Reason, c.Message)
	}
	events, err := l.Notes(t.Context(), pod, "")
	if err != nil {
		fmt.Fprintln(&story, err)
	}
	for _, note := range events {
		fmt.Fprintf(&story, "event %s\n", note)
	}
	return story.String()
}

// Notes returns the notes of the pod's events. If reason is not empty, only events with this reason count.
func (l *Lab) Notes(ctx context.Context, pod *corev1.Pod, reason string) ([]string, error) {
	events, err := l.Client().EventsV1().Events(l.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	var notes []string
	for _, event := range events.Items {
		if event.Regarding.UID == pod.UID && (reason == "" || event.Reason == reason) {
			notes = append(notes, event.Note)
		}
	}
	return notes, nil
}

// RequireRunning waits until the pods run. In a cluster that does not run pods, it waits until they are bound.
func (l *Lab) RequireRunning(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		l.EventuallyPod(t, name, "Running", func(_ context.Context, pod *corev1.Pod) (bool, error) {
			return pod.Status.Phase == corev1.PodRunning || l.static && pod.Spec.NodeName != "", nil
		})
	}
}

// RequireRefused waits until the pod is unschedulable. The condition and an event must both contain all of the texts, and the
// pod's claims must not be allocated.
func (l *Lab) RequireRefused(t testing.TB, name string, texts ...string) {
	t.Helper()
	pod := l.EventuallyPod(t, name, fmt.Sprintf("refused with %q", texts), func(_ context.Context, pod *corev1.Pod) (bool, error) {
		return IsRefused(pod, texts...), nil
	})
	l.AwaitEvent(t, pod, "FailedScheduling", texts...)
	require.Empty(t, pod.Spec.NodeName)
	for _, claim := range l.ClaimsOf(t, pod) {
		require.Nil(t, claim.Status.Allocation, "allocation of claim %s", claim.Name)
		require.Empty(t, claim.Status.ReservedFor, "users of claim %s", claim.Name)
	}
}

// AwaitEvent waits until an event of the pod contains all of the texts. The condition may change with the next scheduling
// attempt, but the event stays.
func (l *Lab) AwaitEvent(t testing.TB, pod *corev1.Pod, reason string, texts ...string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("event %s of pod %s says %q", reason, pod.Name, texts), func(ctx context.Context) (string, error) {
		notes, err := l.Notes(ctx, pod, reason)
		if err != nil || !slices.ContainsFunc(notes, func(note string) bool { return ContainsAll(note, texts) }) {
			return fmt.Sprintf("there are %q", notes), err
		}
		return "", nil
	})
}

// IsRefused reports whether the pod's condition says that it is unschedulable, in a message that contains all of the texts.
func IsRefused(pod *corev1.Pod, texts ...string) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && ContainsAll(c.Message, texts)
	})
}

// ContainsAll reports whether a message contains all of the texts.
func ContainsAll(message string, texts []string) bool {
	return !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(message, text) })
}

// ClaimsOf returns the claims that a pod uses, including claims that were created from templates.
func (l *Lab) ClaimsOf(t testing.TB, pod *corev1.Pod) []*resourceapi.ResourceClaim {
	t.Helper()
	claims := make([]*resourceapi.ResourceClaim, 0, len(pod.Spec.ResourceClaims))
	for i := range pod.Spec.ResourceClaims {
		name, _, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		require.NoError(t, err)
		claims = append(claims, l.Claim(t, *name))
	}
	return claims
}

// Pod reads a pod.
func (l *Lab) Pod(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	pod, err := l.pods().Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return pod
}

// Claim reads a claim.
func (l *Lab) Claim(t testing.TB, name string) *resourceapi.ResourceClaim {
	t.Helper()
	claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	return claim
}

// DevicesOf returns the names of the devices in the pod's claims, in the order of the allocation.
func (l *Lab) DevicesOf(t testing.TB, podName string) []string {
	t.Helper()
	var names []string
	for _, claim := range l.ClaimsOf(t, l.Pod(t, podName)) {
		names = append(names, DeviceNames(claim)...)
	}
	return names
}

// DeviceNames returns the names of the allocated devices. Without an allocation the result is nil.
func DeviceNames(claim *resourceapi.ResourceClaim) []string {
	if claim.Status.Allocation == nil {
		return nil
	}
	var names []string
	for _, result := range claim.Status.Allocation.Devices.Results {
		names = append(names, result.Device)
	}
	return names
}

// RequireFreed waits until the claim is deallocated and not reserved for any pod.
func (l *Lab) RequireFreed(t testing.TB, claim string) {
	t.Helper()
	Eventually(t, "claim "+claim+" gives its devices back", func(ctx context.Context) (string, error) {
		claim, err := l.Client().ResourceV1().ResourceClaims(l.Namespace).Get(ctx, claim, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return strings.Join(DeviceNames(claim), ", "), nil
	})
}
