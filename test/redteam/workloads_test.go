// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package redteam

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/celset/celset/internal/testing/cases"
	"github.com/celset/celset/internal/testing/fleet"
	"github.com/celset/celset/test/controlplane"
)

// TestWorkloadsTakeTurns lets mallory create many Workloads for MultiKueue that name one Placement, whose decision changes all
// the time. The controller must nominate a cluster for a Workload of alice after a few of mallory's Workloads, not after all of
// them.
func TestWorkloadsTakeTurns(t *testing.T) {
	many, rounds := 60, 9
	if cases.Nightly() {
		many, rounds = 300, 40
	}
	l := startLab(t)
	l.InstallKueue(t)
	l.admin = l.client(t, controlplane.AdminUser)
	workers := []string{fleet.Cluster(0, time.Now()).Name, fleet.Cluster(1, time.Now()).Name}
	l.kueue(t, fmt.Sprintf(`{kind: MultiKueueConfig, metadata: {name: workers}, spec: {clusters: [%s]}}`, strings.Join(workers, ", ")))
	l.kueue(t, `{kind: AdmissionCheck, metadata: {name: multikueue}, spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {apiGroup: kueue.x-k8s.io, kind: MultiKueueConfig, name: workers}}}`)
	dispatcher, _ := l.placement(t, "--multikueue")
	dispatcher.run(t)

	only := func(cluster string) string { return "managedCluster.metadata.name == '" + cluster + "'" }
	changing := placementOf(mallory, "changing", only(workers[0]))
	require.NoError(t, l.mallory.Create(t.Context(), changing))
	nominations := l.watchWorkloads(t, mallory)
	for i := range many {
		l.submit(t, mallory, fmt.Sprint("many-", i), changing.Name)
	}
	require.Eventually(t, func() bool { return len(nominations()) >= many }, 3*time.Minute, 100*time.Millisecond)

	stop, all := make(chan struct{}), sync.WaitGroup{}
	all.Go(func() {
		for i := 1; ; i++ {
			before := changing.DeepCopy()
			changing.Spec.Predicates[0].RequiredClusterSelector.CelSelector.CelExpressions[0] = only(workers[i%2])
			_ = l.mallory.Patch(context.WithoutCancel(t.Context()), changing, client.MergeFrom(before))
			select {
			case <-stop:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	})
	time.Sleep(time.Second)
	var took []time.Duration
	type span struct{ from, to int }
	var spans []span
	for i := range rounds {
		began := time.Now()
		from := l.submit(t, alice, fmt.Sprint("one-", i), "")
		to := l.nominated(t, alice, fmt.Sprint("one-", i))
		took = append(took, time.Since(began))
		spans = append(spans, span{from, to})
	}
	close(stop)
	all.Wait()
	versions := nominations()
	var between []int
	for _, s := range spans {
		n := 0
		for _, version := range versions {
			if version > s.from && version < s.to {
				n++
			}
		}
		between = append(between, n)
	}
	slices.Sort(took)
	slices.Sort(between)
	t.Logf("%d Workloads of mallory's, %d nominations; alice's took %s; nominations of mallory's meanwhile: %d in the middle and at most %d",
		many, len(versions), written(took), between[len(between)/2], between[len(between)-1])
	require.Greater(t, len(versions), many+rounds, "mallory's are nominated again")
	require.LessOrEqual(t, between[len(between)/2], 5)
	if cases.Nightly() {
		require.Less(t, took[len(took)/2], time.Second)
	}
}

func (l *lab) kueue(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	require.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
	object.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	require.NoError(t, l.admin.Create(t.Context(), object))
	return object
}

// submit creates a Workload and reserves its quota, as Kueue would. It returns the Workload's resource version.
func (l *lab) submit(t *testing.T, namespace, name, placement string) (version int) {
	t.Helper()
	object := l.kueue(t, fmt.Sprintf(`{kind: Workload, metadata: {namespace: %s, name: %s}, spec: {queueName: q, podSets: [{name: main, count: 1, template: {spec: {containers: [{name: c, image: i}]}}}]}}`, namespace, name))
	if placement != "" {
		object.SetLabels(map[string]string{clusterv1beta1.PlacementLabel: placement})
		require.NoError(t, l.admin.Update(t.Context(), object))
	}
	now := time.Now().UTC().Format(time.RFC3339)
	status := &unstructured.Unstructured{Object: map[string]any{}}
	require.NoError(t, yaml.Unmarshal([]byte(strings.ReplaceAll(`{status: {
  conditions: [{type: QuotaReserved, status: "True", reason: QuotaReserved, message: "", lastTransitionTime: AT}],
  admission: {clusterQueue: q, podSetAssignments: [{name: main, count: 1}]},
  admissionChecks: [{name: multikueue, state: Pending, message: "", lastTransitionTime: AT}]}}`, "AT", now)), &status.Object))
	status.SetGroupVersionKind(object.GroupVersionKind())
	status.SetNamespace(namespace)
	status.SetName(name)
	require.NoError(t, l.admin.Status().Apply(t.Context(), client.ApplyConfigurationFromUnstructured(status), client.FieldOwner("kueue-admission"), client.ForceOwnership))
	version, err := strconv.Atoi(status.GetResourceVersion())
	require.NoError(t, err)
	return version
}

// nominated waits until a cluster is nominated for a Workload, and returns the Workload's resource version.
func (l *lab) nominated(t *testing.T, namespace, name string) (version int) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	object.SetKind("Workload")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, poll(ctx, func() (bool, error) {
		err := l.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		clusters, _, _ := unstructured.NestedStringSlice(object.Object, "status", "nominatedClusterNames")
		return len(clusters) > 0, err
	}))
	version, err := strconv.Atoi(object.GetResourceVersion())
	require.NoError(t, err)
	return version
}

// watchWorkloads watches the Workloads of a namespace. versions returns the resource versions at which clusters were nominated.
func (l *lab) watchWorkloads(t *testing.T, namespace string) (versions func() []int) {
	t.Helper()
	watching, err := client.NewWithWatch(l.ConfigOf(t, controlplane.AdminUser), client.Options{Scheme: l.Scheme()})
	require.NoError(t, err)
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	list.SetKind("WorkloadList")
	events, err := watching.Watch(t.Context(), list, client.InNamespace(namespace))
	require.NoError(t, err)
	t.Cleanup(events.Stop)
	var mutex sync.Mutex
	var seen []int
	last := map[string]string{}
	go func() {
		for event := range events.ResultChan() {
			object, ok := event.Object.(*unstructured.Unstructured)
			if !ok || event.Type == watch.Deleted {
				continue
			}
			clusters, _, _ := unstructured.NestedStringSlice(object.Object, "status", "nominatedClusterNames")
			version, err := strconv.Atoi(object.GetResourceVersion())
			if now := fmt.Sprint(clusters); err == nil && len(clusters) > 0 && now != last[object.GetName()] {
				last[object.GetName()] = now
				mutex.Lock()
				seen = append(seen, version)
				mutex.Unlock()
			}
		}
	}()
	return func() []int {
		mutex.Lock()
		defer mutex.Unlock()
		return slices.Clone(seen)
	}
}
