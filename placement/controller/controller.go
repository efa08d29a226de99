// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	clusterv1alpha1 "open-cluster-management.io/api/cluster/v1alpha1"
	clusterv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
	profilev1alpha1 "sigs.k8s.io/cluster-inventory-api/apis/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrl "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/inventory"
	"github.com/celset/celset/placement/turns"
)

// Name is the name of the controller in logs, metrics and events. SlowName is its name for the queue of expensive Placements.
const (
	Name     = "celset-placement"
	SlowName = Name + "-slow"
)

// DefaultWorkers is the default number of Placements decided at the same time. One more worker decides expensive Placements.
const DefaultWorkers = 4

// Options configure [Add].
type Options struct {
	// All makes the controller decide all Placements except disabled ones. If it is false, the controller decides only Placements
	// with the annotation celset.dev/placement.
	All bool
	// Workers is the number of Placements decided at the same time, 0 for [DefaultWorkers]. One more worker decides expensive
	// Placements.
	Workers int
	// Scheduler configures how Placements are decided. Timeouts overrides its EvaluationTimeout.
	Scheduler placement.Config
	// Timeouts limits the time for evaluating expressions.
	Timeouts Timeouts
	// Inventory is the source of the clusters. Nil means [inventory.ManagedClusters].
	Inventory inventory.Inventory
	// ProfileDecisions makes the controller also write PlacementDecisions of SIG Multicluster. It requires the Inventory
	// [inventory.ClusterProfiles].
	ProfileDecisions bool
	// Observer measures writes and turns. It may be nil.
	Observer Observer
	// Now returns the current time. Nil means [time.Now].
	Now func() time.Time
	// SkipNameValidation allows several controllers of the same name in one process.
	SkipNameValidation bool
}

// Observer measures the controller. Its methods are called concurrently and must not block.
type Observer interface {
	// ObserveWriting is called when the controller starts to write the PlacementDecisions of a Placement. After the last write,
	// the controller calls end with the error, or with nil.
	ObserveWriting() (end func(error))
	// ObserveTurn is called after each turn of a Placement. turn is [TurnDone], [TurnContinued], [TurnFailed] or [TurnUnchanged].
	// slow is true if the Placement is in the queue of expensive Placements.
	ObserveTurn(turn string, slow bool)
}

type unobserved struct{}

func (unobserved) ObserveTurn(string, bool) {}

func (unobserved) ObserveWriting() (end func(error)) { return func(error) {} }

// AddToScheme adds the kinds that the controller reads and writes to a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	for _, add := range []func(*runtime.Scheme) error{
		clusterv1.Install, clusterv1alpha1.Install, clusterv1beta1.Install, clusterv1beta2.Install,
		profilev1alpha1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return err
		}
	}
	return nil
}

// reconciler decides Placements and writes the decisions.
type reconciler struct {
	hub
	events    events.EventRecorder
	scheduler *placement.Scheduler
	records   *records
	// usual and slow are the queues of cheap and of expensive Placements.
	usual, slow lane
	observer    Observer
	// all is set if the controller decides all Placements, not only annotated ones.
	all bool
	now func() time.Time
}

// hub reads the objects that a decision depends on, and writes PlacementDecisions.
type hub struct {
	// client reads from the cache and writes. reader reads from the API server.
	client    client.Client
	reader    client.Reader
	inventory inventory.Inventory
	clusters  collected[[]*clusterv1.ManagedCluster]
	scores    collected[*scores]
	ledger    *ledger
	// profiles is the namespace of the ClusterProfiles to which PlacementDecisions of SIG Multicluster refer. It is "" if the
	// controller writes no such PlacementDecisions.
	profiles string
}

// Add adds the controller to a manager. The scheme of the manager must contain the kinds of [AddToScheme]. The controller runs
// with the manager. With leader election it runs only on the leader.
func Add(mgr manager.Manager, options Options) error {
	timeouts := options.Timeouts.orDefaults()
	scheduler, err := newScheduler(options.Scheduler, timeouts)
	if err != nil {
		return fmt.Errorf("placement controller: %w", err)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Observer == nil {
		options.Observer = unobserved{}
	}
	if options.Workers <= 0 {
		options.Workers = DefaultWorkers
	}
	if options.Inventory == nil {
		options.Inventory = inventory.ManagedClusters{}
	}
	profiles, ok := options.Inventory.(inventory.ClusterProfiles)
	if options.ProfileDecisions && !ok {
		return errors.New("placement controller: ProfileDecisions is set, but the inventory is not ClusterProfiles")
	}
	r := &reconciler{
		hub:    hub{client: mgr.GetClient(), reader: mgr.GetAPIReader(), inventory: options.Inventory, ledger: newLedger()},
		events: lateEvents{mgr.GetEventRecorder(Name), mgr.GetScheme()}, scheduler: scheduler, records: newRecords(timeouts),
		observer: options.Observer, all: options.All, now: options.Now,
	}
	if options.ProfileDecisions {
		r.profiles = profiles.Namespace
	}
	r.clusters.collect = func(ctx context.Context) ([]*clusterv1.ManagedCluster, error) {
		clusters, err := r.inventory.Clusters(ctx, r.client)
		// [collected.get] calls this function under a mutex, so the former value can be read here.
		return unchanged(r.clusters.value, clusters), err
	}
	r.scores.collect = func(ctx context.Context) (*scores, error) { return collectScores(ctx, r.client) }
	with := ctrl.Options{MaxConcurrentReconciles: options.Workers, SkipNameValidation: &options.SkipNameValidation, NewQueue: turns.NewQueue}
	err = r.watches(builder.ControllerManagedBy(mgr).Named(Name)).WatchesRawSource(r.usual.source()).WithOptions(with).
		Complete(worker{reconciler: r})
	if err != nil {
		return err
	}
	with.MaxConcurrentReconciles = 1
	return builder.ControllerManagedBy(mgr).Named(SlowName).WatchesRawSource(r.slow.source()).WithOptions(with).
		Complete(worker{reconciler: r, slow: true})
}

func newScheduler(config placement.Config, timeouts Timeouts) (*placement.Scheduler, error) {
	config.EvaluationTimeout = timeouts.Evaluation
	return placement.NewScheduler(config)
}

// watches registers the watches. It ignores periodic resyncs without changes, because a Placement whose result changes with
// time is queued for that time.
func (r *reconciler) watches(b *builder.Builder) *builder.Builder {
	changed := builder.WithPredicates(predicate.ResourceVersionChangedPredicate{})
	if group := r.inventory.Group(); group != nil {
		b.Watches(group, handler.EnqueueRequestsFromMapFunc(r.ofGroup), builder.WithPredicates(predicate.LabelChangedPredicate{}))
	}
	if r.profiles != "" {
		b.Watches(&profilev1alpha1.PlacementDecision{}, handler.EnqueueRequestsFromMapFunc(ofPublished), changed)
	}
	return b.
		For(&clusterv1beta1.Placement{}, changed, builder.WithPredicates(r.isNews())).
		Watches(&clusterv1beta1.Placement{}, r.confirm(), changed).
		Watches(&clusterv1beta1.PlacementDecision{}, r.ledger.handler(), changed).
		Watches(r.inventory.Object(), handler.EnqueueRequestsFromMapFunc(r.ofCluster), changed).
		Watches(&clusterv1beta2.ManagedClusterSet{}, handler.EnqueueRequestsFromMapFunc(r.ofClusterSet), changed).
		Watches(&clusterv1beta2.ManagedClusterSetBinding{}, handler.EnqueueRequestsFromMapFunc(r.ofBinding), changed).
		Watches(&clusterv1alpha1.AddOnPlacementScore{}, handler.EnqueueRequestsFromMapFunc(r.ofScore), changed)
}
