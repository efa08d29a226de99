// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/utils/ptr"

	"github.com/celset/celset/internal/topology"
	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/ledger"
)

// concurrentRequests is the maximum number of concurrent requests of a workload.
const concurrentRequests = 4

// now are the options for a deletion with a grace period of zero.
var now = metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}

// A workload holds the pods and claims that a test creates, and the nodes and devices for them.
type workload struct {
	namespace string
	nodes     []string
	templates map[string]*resourceapi.ResourceClaimTemplate // as in testdata/workload.yaml, by name
	ledger    *ledger.Ledger
	gates     []*gate // gates of all schedulers that have been started

	made int // number of units that have been created
	live map[string]*unit
	// freed holds the claims of deleted units. They must become deallocated.
	freed sets.Set[string]
}

// A unit is one pod, or all pods that share a claim.
type unit struct {
	kind  *kind
	claim string // empty if the claim comes from a template
	pods  []string
}

// newWorkload creates a namespace, nodes with a ring and a mesh of devices each, and the claim templates of all kinds.
func newWorkload(t *testing.T, name string, nodes int) *workload {
	t.Helper()
	return newWorkloadAt(t, name, nodes, false)
}

// newWorkloadAt is like newWorkload. If restarted is set, its ledger works even if etcd and the API server are restarted.
func newWorkloadAt(t *testing.T, name string, nodes int, restarted bool) *workload {
	t.Helper()
	l := cluster.NewLab(t, name, nodes)
	w := &workload{namespace: l.Namespace, nodes: l.Nodes, live: map[string]*unit{}, freed: sets.New[string]()}
	w.ledger, _ = cluster.KeepLedger(t, w.namespace, restarted, judge)
	env.CleanUp(t, func(ctx context.Context) error {
		return client().CoreV1().Pods(w.namespace).DeleteCollection(ctx, now, metav1.ListOptions{})
	})
	for _, devices := range []topology.Topology{ring, mesh} {
		l.Publish(t, devices, l.Nodes...)
	}
	w.createTemplates(t)
	return w
}

// createTemplates creates the claim templates and classes in testdata/workload.yaml.
func (w *workload) createTemplates(t *testing.T) {
	t.Helper()
	w.templates = map[string]*resourceapi.ResourceClaimTemplate{}
	content, err := os.ReadFile(filepath.Join("testdata", "workload.yaml"))
	require.NoError(t, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(content), 4096); ; {
		template := &resourceapi.ResourceClaimTemplate{}
		if err := decoder.Decode(template); errors.Is(err, io.EOF) {
			break
		} else {
			require.NoError(t, err)
		}
		if template.Kind == "ResourceClaimTemplate" {
			w.templates[template.Name] = template
		}
	}
	cluster.ApplyText(t, string(content))
	for _, k := range kinds {
		if k.template == "" {
			continue
		}
		template := w.templates[k.template].DeepCopy()
		template.ObjectMeta = metav1.ObjectMeta{Name: k.name}
		template.Spec.Labels = map[string]string{kindLabel: k.name}
		_, err := client().ResourceV1().ResourceClaimTemplates(w.namespace).Create(t.Context(), template, metav1.CreateOptions{})
		require.NoError(t, err)
	}
}

// add creates a unit of each of the kinds, and returns the names of the units. It creates claims before pods.
func (w *workload) add(t *testing.T, kinds ...*kind) (names []string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(concurrentRequests)
	for _, k := range kinds {
		w.made++
		name := fmt.Sprintf("%s-%d", k.name, w.made)
		u := &unit{kind: k}
		if k.pods > 0 {
			u.claim = name
		}
		for i := range max(k.pods, 1) {
			u.pods = append(u.pods, fmt.Sprintf("%s-%d", name, i))
		}
		w.live[name] = u
		names = append(names, name)
		group.Go(func() error { return w.create(ctx, u) })
	}
	require.NoError(t, group.Wait())
	return names
}

func (w *workload) create(ctx context.Context, u *unit) error {
	if u.claim != "" {
		claim := &resourceapi.ResourceClaim{
			ObjectMeta: metav1.ObjectMeta{Name: u.claim, Labels: map[string]string{kindLabel: u.kind.name}},
			Spec:       w.templates[u.kind.template].Spec.Spec,
		}
		if _, err := client().ResourceV1().ResourceClaims(w.namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	for _, name := range u.pods {
		if _, err := client().CoreV1().Pods(w.namespace).Create(ctx, u.kind.pod(name, u.claim), metav1.CreateOptions{}); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes the pods of the units, in any state. Claims that are not owned by a pod stay.
func (w *workload) delete(t *testing.T, names ...string) {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(concurrentRequests)
	for _, name := range names {
		u := w.live[name]
		delete(w.live, name)
		if u.claim != "" {
			w.freed.Insert(u.claim)
		}
		for _, pod := range u.pods {
			group.Go(func() error {
				return client().CoreV1().Pods(w.namespace).Delete(ctx, pod, now)
			})
		}
	}
	require.NoError(t, group.Wait())
}

// deleteFreed deletes the claims in freed that are deallocated.
func (w *workload) deleteFreed(t *testing.T) {
	t.Helper()
	for name := range w.freed {
		err := client().ResourceV1().ResourceClaims(w.namespace).Delete(t.Context(), name, metav1.DeleteOptions{})
		require.NoError(t, err)
	}
	w.freed = sets.New[string]()
}

// deleteUntil deletes random units until n units are left.
func (w *workload) deleteUntil(t *testing.T, random *rand.Rand, n int) {
	t.Helper()
	names := slices.Sorted(maps.Keys(w.live))
	random.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	w.delete(t, names[:max(0, len(names)-n)]...)
}

// list returns the pods and claims of the workload. It lists pods and claims one after the other, so they may be from different
// moments.
func (w *workload) list(ctx context.Context) (pods map[types.UID]*corev1.Pod, claims []resourceapi.ResourceClaim, err error) {
	podList, err := client().CoreV1().Pods(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	claimList, err := client().ResourceV1().ResourceClaims(w.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, nil, err
	}
	pods = make(map[types.UID]*corev1.Pod, len(podList.Items))
	for i := range podList.Items {
		pods[podList.Items[i].UID] = &podList.Items[i]
	}
	return pods, claimList.Items, nil
}

// eventuallyPods waits until check returns "" for each pod of a unit.
func (w *workload) eventuallyPods(t *testing.T, unit, what string, check func(*corev1.Pod) (complaint string)) {
	t.Helper()
	for _, name := range w.live[unit].pods {
		env.Eventually(t, fmt.Sprintf("pod %s is %s", name, what), func(ctx context.Context) (string, error) {
			pod, err := client().CoreV1().Pods(w.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return check(pod), nil
		})
	}
}

// requireBound waits until all pods of the units are bound.
func (w *workload) requireBound(t *testing.T, units ...string) {
	t.Helper()
	for _, unit := range units {
		w.eventuallyPods(t, unit, "bound", func(pod *corev1.Pod) string {
			if pod.Spec.NodeName == "" {
				return "it has no node: " + refusalOf(pod)
			}
			return ""
		})
	}
}

// requireRefused waits until the pods of the units are unschedulable, with a message that contains the text.
func (w *workload) requireRefused(t *testing.T, text string, units ...string) {
	t.Helper()
	for _, unit := range units {
		w.eventuallyPods(t, unit, "refused: "+text, func(pod *corev1.Pod) string {
			if pod.Spec.NodeName != "" || !strings.Contains(refusalOf(pod), text) {
				return fmt.Sprintf("node %q: %s", pod.Spec.NodeName, refusalOf(pod))
			}
			return ""
		})
	}
	for name, allocation := range w.allocations(t) {
		for _, unit := range units {
			require.False(t, name == unit || strings.HasPrefix(name, unit+"-"), "claim %s has %v", name, allocation)
		}
	}
}

// requireFreed waits until the claims of deleted units are deallocated.
func (w *workload) requireFreed(t *testing.T) {
	t.Helper()
	for name := range w.freed {
		env.Eventually(t, "claim "+name+" gives its devices back", func(ctx context.Context) (string, error) {
			claim, err := client().ResourceV1().ResourceClaims(w.namespace).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			return strings.Join(ledger.DevicesOf(claim), ", "), nil
		})
	}
}

// join creates another pod that uses the claim of the unit.
func (w *workload) join(t *testing.T, unit string) {
	t.Helper()
	u := w.live[unit]
	require.NotEmpty(t, u.claim)
	name := fmt.Sprintf("%s-%d", unit, len(u.pods))
	_, err := client().CoreV1().Pods(w.namespace).Create(t.Context(), u.kind.pod(name, u.claim), metav1.CreateOptions{})
	require.NoError(t, err)
	u.pods = append(u.pods, name)
}

// allocations returns the allocation of each allocated claim, by the name of the claim.
func (w *workload) allocations(t *testing.T) map[string]resourceapi.AllocationResult {
	t.Helper()
	claims, err := client().ResourceV1().ResourceClaims(w.namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	allocations := map[string]resourceapi.AllocationResult{}
	for _, claim := range claims.Items {
		if claim.Status.Allocation != nil {
			allocations[claim.Name] = *claim.Status.Allocation
		}
	}
	return allocations
}

// requireKept requires that all allocations in before still exist and are unchanged.
func (w *workload) requireKept(t *testing.T, before map[string]resourceapi.AllocationResult) {
	t.Helper()
	after := w.allocations(t)
	for name, allocation := range before {
		require.Empty(t, cmp.Diff(allocation, after[name]), name)
	}
}
