// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/apis/wellknown"
)

// nomination has the clusters to which a Workload is offered.
type nomination struct {
	clusters []string
	// reason and why are the reason and the message of an event. They are set if no cluster is nominated.
	reason, why string
	// next is the time until more clusters are nominated. 0 means that no more clusters follow.
	next time.Duration
}

// Reconcile nominates clusters for a Workload. If the cached objects require a write, Reconcile reads the Workload from the API
// server and decides again.
func (r *reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var (
		object *unstructured.Unstructured
		n      *nomination
	)
	for _, reader := range []client.Reader{r.cache, r.live} {
		object = empty(workloadKind)
		if err := reader.Get(ctx, request.NamespacedName, object); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		w, err := read(object)
		if err != nil {
			return reconcile.Result{}, reconcile.TerminalError(err)
		}
		if n, err = r.nominate(ctx, w); err != nil || n == nil {
			return reconcile.Result{}, err
		}
		if slices.Equal(n.clusters, w.Status.NominatedClusterNames) {
			if n.reason != "" {
				// The API server limits the note of an event to 1,024 bytes. The names of 20 worker clusters may be longer.
				r.events.Eventf(object, nil, corev1.EventTypeWarning, n.reason, wellknown.ActionNominating, "No cluster is nominated: %.950s", n.why)
			}
			return reconcile.Result{RequeueAfter: n.next}, nil
		}
	}
	return reconcile.Result{RequeueAfter: n.next}, r.write(ctx, object, n.clusters)
}

// nominate returns the clusters to which a Workload is offered. It returns nil if the Workload waits for no cluster, or if the
// Placement's decision is not completely written.
func (r *reconciler) nominate(ctx context.Context, w *workload) (*nomination, error) {
	if !w.waits() {
		return nil, nil
	}
	workers, err := r.workers(ctx, w)
	if err != nil || workers == nil {
		return nil, err
	}
	name := w.Labels[clusterv1beta1.PlacementLabel]
	if name == "" {
		return &nomination{clusters: workers}, nil
	}
	placement := &clusterv1beta1.Placement{}
	if err := r.cache.Get(ctx, types.NamespacedName{Namespace: w.Namespace, Name: name}, placement); err != nil {
		if apierrors.IsNotFound(err) {
			why := fmt.Sprintf("Placement %s/%s does not exist; create it, or correct the label %s of the job", w.Namespace, name, clusterv1beta1.PlacementLabel)
			return &nomination{reason: wellknown.ReasonPlacementNotFound, why: why}, nil
		}
		return nil, err
	}
	groups, whole, err := r.groups(ctx, placement, workers)
	if err != nil || !whole {
		return nil, err
	}
	if len(groups) == 0 {
		why := fmt.Sprintf("Placement %s/%s selects none of the worker clusters %v", w.Namespace, name, workers)
		return &nomination{reason: wellknown.ReasonNoWorkerDecided, why: why}, nil
	}
	taken, next := rounds(time.Since(w.reserved().LastTransitionTime.Time), r.round, len(groups))
	return &nomination{clusters: offered(groups, taken, w.Status.NominatedClusterNames), next: next}, nil
}

// offered returns the clusters of the first taken groups, and those clusters of later groups that are already nominated. The
// latter keep their nomination, because one of them may have just admitted the Workload, and Kueue assigns only nominated
// clusters.
func offered(groups [][]string, taken int, before []string) []string {
	result := slices.Concat(groups[:taken]...)
	for _, cluster := range slices.Concat(groups[taken:]...) {
		if slices.Contains(before, cluster) {
			result = append(result, cluster)
		}
	}
	return result
}

// rounds returns the number of groups to nominate when the time passed has elapsed since the reservation. next is the time
// until one more group is nominated, 0 for never. passed may be negative if the clock of the API server is ahead.
func rounds(passed, round time.Duration, groups int) (taken int, next time.Duration) {
	passed = max(0, passed)
	if over := int64(passed / round); over < int64(groups)-1 {
		return int(over) + 1, round - passed%round
	}
	return groups, 0
}

// workers returns the clusters in the MultiKueueConfig of a Workload's admission check. It returns nil if no check of
// MultiKueue is pending, or if the MultiKueueConfig is missing. Kueue itself reports a check without a valid MultiKueueConfig
// as inactive.
func (r *reconciler) workers(ctx context.Context, w *workload) ([]string, error) {
	for _, state := range w.Status.AdmissionChecks {
		check := empty(checkKind)
		if err := r.cache.Get(ctx, types.NamespacedName{Name: state.Name}, check); err != nil {
			if apierrors.IsNotFound(err) {
				continue
			}
			return nil, err
		}
		if of, _, _ := unstructured.NestedString(check.Object, "spec", "controllerName"); of != controllerName {
			continue
		}
		parameters, _, _ := unstructured.NestedStringMap(check.Object, "spec", "parameters")
		if state.State != "Pending" || parameters["apiGroup"] != configKind.Group || parameters["kind"] != configKind.Kind {
			return nil, nil
		}
		config := empty(configKind)
		if err := r.cache.Get(ctx, types.NamespacedName{Name: parameters["name"]}, config); err != nil {
			return nil, client.IgnoreNotFound(err)
		}
		clusters, _, err := unstructured.NestedStringSlice(config.Object, "spec", "clusters")
		return clusters, err
	}
	return nil, nil
}

// groups returns the clusters of each decision group, in order. It leaves out clusters that are not in some, and groups that
// are then empty. whole is false while the controller writes the PlacementDecisions one by one, because a cluster may then be
// in two PlacementDecisions or in none. The next write causes an event.
func (r *reconciler) groups(ctx context.Context, placement *clusterv1beta1.Placement, some []string) (result [][]string, whole bool, err error) {
	seen := sets.Set[string]{}
	for _, group := range placement.Status.DecisionGroups {
		var clusters []string
		for _, name := range group.Decisions {
			decision := &clusterv1beta1.PlacementDecision{}
			if err := r.cache.Get(ctx, types.NamespacedName{Namespace: placement.Namespace, Name: name}, decision); err != nil {
				return nil, false, client.IgnoreNotFound(err)
			}
			for _, decided := range decision.Status.Decisions {
				if !seen.Has(decided.ClusterName) && slices.Contains(some, decided.ClusterName) {
					clusters = append(clusters, decided.ClusterName)
				}
				seen.Insert(decided.ClusterName)
			}
		}
		if len(clusters) > 0 {
			result = append(result, clusters)
		}
	}
	return result, seen.Len() == int(placement.Status.NumberOfSelectedClusters), nil
}
