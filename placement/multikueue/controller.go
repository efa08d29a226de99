// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package multikueue

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/ptr"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/celset/celset/placement/turns"
)

// Name is the name of the controller in logs, metrics and events.
const Name = "celset-multikueue"

// DefaultRound is the default of [Options.Round]. Kueue's incremental dispatcher has the same interval.
const DefaultRound = 5 * time.Minute

// These are kinds of Kueue. Kueue 0.15 and later serve this version.
var (
	version      = schema.GroupVersion{Group: "kueue.x-k8s.io", Version: "v1beta2"}
	workloadKind = version.WithKind("Workload")
	checkKind    = version.WithKind("AdmissionCheck")
	configKind   = version.WithKind("MultiKueueConfig")
)

const (
	// controllerName is the name in an AdmissionCheck that MultiKueue's controller handles.
	controllerName = "kueue.x-k8s.io/multikueue"
	// componentNumber is the annotation with the index of a Workload among the Workloads of one job.
	componentNumber = "kueue.x-k8s.io/component-workload-index"
)

// ofPlacement is the name of the index of Workloads that wait for a cluster. Each Workload has two keys: the name of its
// Placement, and anyPlacement.
const ofPlacement, anyPlacement = "placement", "*"

// Options configure the controller.
type Options struct {
	// Round is the time after which one more decision group is nominated. Groups that were nominated earlier stay nominated. The
	// default is [DefaultRound].
	Round time.Duration
	// SkipNameValidation allows several controllers of the same name in one process.
	SkipNameValidation bool
}

// Cache changes the options of a manager's cache so that the cache removes the pod templates of Workloads.
func Cache(options cache.Options) cache.Options {
	byObject := map[client.Object]cache.ByObject{
		empty(workloadKind): {UnsafeDisableDeepCopy: ptr.To(true), Transform: func(object any) (any, error) {
			if w, ok := object.(*unstructured.Unstructured); ok {
				return essence(w), nil
			}
			return object, nil
		}},
	}
	for object, by := range options.ByObject {
		byObject[object] = by
	}
	options.ByObject = byObject
	return options
}

// Add adds the controller to a manager. The manager's scheme must have the kinds of clusterv1beta1, and its API server must
// serve the kinds of Kueue.
func Add(mgr manager.Manager, options Options) error {
	if options.Round <= 0 {
		options.Round = DefaultRound
	}
	discovery, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return fmt.Errorf("%s: %w", Name, err)
	}
	r := &reconciler{
		cache: mgr.GetCache(), live: mgr.GetAPIReader(), status: mgr.GetClient().Status(), events: mgr.GetEventRecorder(Name), round: options.Round,
		fields: &ownedFields{openAPI: discovery.OpenAPIV3()},
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), empty(workloadKind), ofPlacement, indexed); err != nil {
		return fmt.Errorf("%s: index Workloads: %w", Name, err)
	}
	changed := builder.WithPredicates(predicate.GenerationChangedPredicate{})
	all := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, _ client.Object) []reconcile.Request {
		return r.waiting(ctx, anyPlacement)
	})
	return builder.ControllerManagedBy(mgr).Named(Name).
		For(empty(workloadKind)).
		Watches(&clusterv1beta1.Placement{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			return r.waiting(ctx, object.GetName(), client.InNamespace(object.GetNamespace()))
		})).
		Watches(&clusterv1beta1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, object client.Object) []reconcile.Request {
			return r.waiting(ctx, object.GetLabels()[clusterv1beta1.PlacementLabel], client.InNamespace(object.GetNamespace()))
		})).
		Watches(empty(checkKind), all, changed).
		Watches(empty(configKind), all, changed).
		WithOptions(ctrl.Options{SkipNameValidation: &options.SkipNameValidation, NewQueue: turns.NewQueue}).
		Complete(r)
}

func empty(kind schema.GroupVersionKind) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// indexed returns the keys of a Workload in the index [ofPlacement].
func indexed(object client.Object) []string {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil
	}
	w, err := read(u)
	if err != nil || !w.waits() {
		return nil
	}
	return []string{anyPlacement, w.Labels[clusterv1beta1.PlacementLabel]}
}

// waiting returns the Workloads that wait for a cluster and have this key in the index [ofPlacement].
func (r *reconciler) waiting(ctx context.Context, placement string, options ...client.ListOption) []reconcile.Request {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(workloadKind)
	if err := r.cache.List(ctx, list, append(options, client.MatchingFields{ofPlacement: placement}, client.UnsafeDisableDeepCopy)...); err != nil {
		log.FromContext(ctx).Error(err, "Listing Workloads failed", "placement", placement)
		return nil
	}
	result := make([]reconcile.Request, 0, len(list.Items))
	for i := range list.Items {
		result = append(result, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
	}
	return result
}

type reconciler struct {
	// cache reads from the cache, live from the API server. The manager's own client would read unstructured objects only from the
	// API server.
	cache, live client.Reader
	status      client.StatusWriter
	events      events.EventRecorder
	round       time.Duration
	fields      *ownedFields
}
