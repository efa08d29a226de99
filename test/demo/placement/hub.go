// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/celset/celset/test/controlplane"
	"github.com/celset/celset/test/hub"
)

// concurrentWrites keep an API server busy.
const concurrentWrites = 16

// setUp installs the kinds and creates rights, sets, bindings, clusters and scores.
func (d *demo) setUp(ctx context.Context, fleet []member) error {
	if err := hub.Install(ctx, d.Config); err != nil {
		return err
	}
	if _, err := controlplane.Apply(ctx, d.Config, d.RBAC, controlplane.ApplyOptions{}); err != nil {
		return err
	}
	if err := d.apply(ctx, "hub.yaml"); err != nil {
		return err
	}
	group, creating := errgroup.WithContext(ctx)
	group.SetLimit(concurrentWrites)
	for _, m := range fleet {
		group.Go(func() error { return d.join(creating, m) })
	}
	return group.Wait()
}

// join creates a cluster with its namespace and its scores.
func (d *demo) join(ctx context.Context, m member) error {
	cluster := m.DeepCopy()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: m.Name}}
	if err := d.client.Create(ctx, namespace); err != nil {
		return err
	}
	if err := d.client.Create(ctx, cluster); err != nil {
		return err
	}
	cluster.Status = m.Status
	if err := d.client.Status().Update(ctx, cluster); err != nil {
		return err
	}
	for _, scores := range m.scores {
		created := scores.DeepCopy()
		if err := d.client.Create(ctx, created); err != nil {
			return err
		}
		created.Status = scores.Status
		if err := d.client.Status().Update(ctx, created); err != nil {
			return err
		}
	}
	return nil
}

// members reads all clusters, in order of their names, with their scores.
func (d *demo) members(ctx context.Context) ([]member, error) {
	var clusters clusterv1.ManagedClusterList
	if err := d.client.List(ctx, &clusters); err != nil {
		return nil, err
	}
	var scores clusterv1alpha1.AddOnPlacementScoreList
	if err := d.client.List(ctx, &scores); err != nil {
		return nil, err
	}
	of := map[string]map[string]*clusterv1alpha1.AddOnPlacementScore{}
	for i := range scores.Items {
		object := &scores.Items[i]
		if of[object.Namespace] == nil {
			of[object.Namespace] = map[string]*clusterv1alpha1.AddOnPlacementScore{}
		}
		of[object.Namespace][object.Name] = object
	}
	var result []member
	for i := range clusters.Items {
		result = append(result, member{&clusters.Items[i], of[clusters.Items[i].Name]})
	}
	slices.SortFunc(result, func(a, b member) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// available are the members that Placements in namespace may choose.
func available(members []member) []member {
	return choose(members, func(m member) bool { return m.Labels[clusterv1beta2.ClusterSetLabel] == bound })
}

func choose(members []member, wanted func(member) bool) []member {
	return slices.DeleteFunc(slices.Clone(members), func(m member) bool { return !wanted(m) })
}

// introduce shows what there is.
func (d *demo) introduce(ctx context.Context) error {
	members, err := d.members(ctx)
	if err != nil {
		return err
	}
	if len(members) != fleetSize {
		return fmt.Errorf("the hub has %d clusters, not %d", len(members), fleetSize)
	}
	d.say("A hub: an API server that knows %d clusters of three clouds. A Placement on it says which clusters a", len(members))
	d.say("workload may run on; celset-placement decides it, and writes the clusters into PlacementDecisions.")
	d.say("%d clusters are in the set %q, which the namespace %q may select from. The others are in", len(available(members)), bound, namespace)
	d.say("the set %q, out of its reach. celset-placement has the rights in manifests/placement/rbac.yaml.\n", unbound)
	d.draw(members, cloudOf, regionOf, versionOf, setOf)
	d.say("")
	return nil
}

// change patches an object.
func change[T client.Object](ctx context.Context, d *demo, object T, mutate func(T)) error {
	before := object.DeepCopyObject().(client.Object)
	mutate(object)
	return d.client.Patch(ctx, object, client.MergeFrom(before))
}
