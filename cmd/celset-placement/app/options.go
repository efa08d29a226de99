// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	componentbaseconfig "k8s.io/component-base/config"
	configoptions "k8s.io/component-base/config/options"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/celset/celset/apis/wellknown"
	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
	debugserver "github.com/celset/celset/placement/debug/server"
	"github.com/celset/celset/placement/inventory"
	"github.com/celset/celset/placement/metrics"
	"github.com/celset/celset/placement/multikueue"
)

// options holds the flags.
type options struct {
	program.ManagerOptions
	all      bool
	bindings bool
	// multikueue turns on the controller that nominates clusters for Kueue's Workloads. round is the interval at which the
	// controller nominates the clusters of the next decision group.
	multikueue bool
	round      time.Duration
	workers    int
	timeouts   controller.Timeouts
	tick       time.Duration
	debug      string
	debugCerts string
	// inventory is the kind of object that represents a cluster. inventoryNamespace is the namespace of these objects.
	inventory          string
	inventoryNamespace string
	profileDecisions   bool
	election           componentbaseconfig.LeaderElectionConfiguration
}

// The values of the flag --inventory: the kinds of object that can represent a cluster.
const (
	managedClusters = "ManagedCluster"
	clusterProfiles = "ClusterProfile"
)

func newOptions() *options {
	return &options{
		ManagerOptions: program.NewManagerOptions(500),
		workers:        controller.DefaultWorkers, debug: program.NoAddress,
		inventory: managedClusters, round: multikueue.DefaultRound, tick: placement.DefaultTick,
		timeouts: controller.Timeouts{Evaluation: placement.DefaultEvaluationTimeout, Turn: controller.DefaultTurn, Total: placement.DefaultTimeout},
		election: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:  "leases", ResourceName: wellknown.LeasePlacement,
		},
	}
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.ManagerOptions.AddFlags(flags)
	flags.BoolVar(&o.all, "all-placements", o.all, "Decide all Placements that are not disabled. By default, only Placements with the annotation celset.dev/placement are decided. With this flag, no other placement controller may run on the hub.")
	flags.BoolVar(&o.bindings, "manage-bindings", o.bindings, "Also create a ManagedClusterSetBinding in a namespace for each ManagedClusterSet that its ServiceAccount named placement may bind.")
	flags.BoolVar(&o.multikueue, "multikueue", o.multikueue, "Also act as an external dispatcher of Kueue's MultiKueue: nominate the clusters of a Placement for the Workloads that name the Placement.")
	flags.DurationVar(&o.round, "multikueue-round-duration", o.round, "Time that the clusters of a decision group have to admit a Workload. After that, the clusters of the next decision group are nominated, too.")
	flags.IntVar(&o.workers, "concurrent-placement-syncs", o.workers, "Number of Placements that are decided at the same time, in addition to one expensive Placement.")
	flags.DurationVar(&o.timeouts.Evaluation, "evaluation-timeout", o.timeouts.Evaluation, "Time limit for the CEL expressions of one predicate of a Placement on one cluster.")
	flags.DurationVar(&o.timeouts.Turn, "evaluation-turn", o.timeouts.Turn, "Time for which the CEL expressions of a Placement are evaluated before other Placements get their turn. An evaluation that takes longer continues in a queue with one worker.")
	flags.DurationVar(&o.timeouts.Total, "placement-timeout", o.timeouts.Total, "Time limit for the CEL expressions of a Placement on all clusters. An evaluation that takes longer continues after a pause.")
	flags.DurationVar(&o.tick, "now-resolution", o.tick, "Resolution of now() in CEL expressions, in whole seconds. A Placement that uses now() is decided again after each such period.")
	flags.StringVar(&o.debug, "debug-bind-address", o.debug, "Address of /debug/placements, which explains the decision of a Placement over TLS. Callers must have the right to get the Placement. Use 0 to disable it.")
	flags.StringVar(&o.debugCerts, "debug-cert-dir", o.debugCerts, "Directory with tls.crt and tls.key for the debug address. By default, a self-signed certificate is created.")
	flags.StringVar(&o.inventory, "inventory", o.inventory, "Kind of the objects that represent clusters: ManagedCluster of Open Cluster Management, or ClusterProfile of SIG Multicluster.")
	flags.StringVar(&o.inventoryNamespace, "inventory-namespace", o.inventoryNamespace, "Namespace of the ClusterProfiles. ClusterProfiles of other namespaces are ignored, because decisions contain only the names of clusters.")
	flags.BoolVar(&o.profileDecisions, "write-profile-decisions", o.profileDecisions, "Also write PlacementDecisions of multicluster.x-k8s.io, which refer to the ClusterProfiles.")
	configoptions.BindLeaderElectionFlags(&o.election, flags)
}

// validate returns an error for each invalid flag.
func (o *options) validate() error {
	errs := []error{o.Validate()}
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("--concurrent-placement-syncs: %d is not positive; use at least 1", o.workers))
	}
	if o.round <= 0 {
		errs = append(errs, fmt.Errorf("--multikueue-round-duration: %s is not positive; use a duration such as %s", o.round, multikueue.DefaultRound))
	}
	if t := o.timeouts; t.Evaluation <= 0 || t.Turn < t.Evaluation || t.Total < t.Turn {
		errs = append(errs, fmt.Errorf("--evaluation-timeout %s must be positive and at most --evaluation-turn %s, which must be at most --placement-timeout %s", t.Evaluation, t.Turn, t.Total))
	}
	if o.tick < time.Second || o.tick%time.Second != 0 {
		errs = append(errs, fmt.Errorf("--now-resolution: %s must be whole seconds, at least 1s", o.tick))
	}
	if e := o.election; e.LeaderElect && (e.RetryPeriod.Duration <= 0 || e.RenewDeadline.Duration <= e.RetryPeriod.Duration || e.LeaseDuration.Duration <= e.RenewDeadline.Duration) {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s must be longer than --leader-elect-renew-deadline %s, which must be longer than --leader-elect-retry-period %s",
			e.LeaseDuration.Duration, e.RenewDeadline.Duration, e.RetryPeriod.Duration))
	}
	errs = append(errs, o.validateInventory())
	if o.debug == "" {
		errs = append(errs, errors.New("--debug-bind-address is empty; use an address such as :8444, or 0 to disable it"))
	}
	return errors.Join(errs...)
}

func (o *options) validateInventory() error {
	switch {
	case o.inventory != managedClusters && o.inventory != clusterProfiles:
		return fmt.Errorf("--inventory: %q is unknown; use %s or %s", o.inventory, managedClusters, clusterProfiles)
	case o.inventory == clusterProfiles && o.inventoryNamespace == "":
		return fmt.Errorf("--inventory=%s needs --inventory-namespace; set it to the namespace of the ClusterProfiles", clusterProfiles)
	case o.inventory == managedClusters && o.inventoryNamespace != "":
		return fmt.Errorf("--inventory-namespace=%s needs --inventory=%s, because ManagedClusters have no namespace; remove --inventory-namespace or set --inventory", o.inventoryNamespace, clusterProfiles)
	case o.inventory == managedClusters && o.profileDecisions:
		return fmt.Errorf("--write-profile-decisions needs --inventory=%s, because these decisions refer to ClusterProfiles", clusterProfiles)
	default:
		return nil
	}
}

// where returns the kind and namespace of the objects that represent clusters, from the flags.
func (o *options) where() inventory.Inventory {
	if o.inventory == clusterProfiles {
		return inventory.ClusterProfiles{Namespace: o.inventoryNamespace}
	}
	return inventory.ManagedClusters{}
}

// manager sets up the manager with all controllers.
func (o *options) manager(config *rest.Config) (manager.Manager, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	measured, err := measure()
	if err != nil {
		return nil, err
	}
	controller.Guard(config, measured.ObserveUndecodable)
	kept := o.where().Cache(binding.Cache(controller.Cache()))
	if o.multikueue {
		kept = multikueue.Cache(kept)
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: kept, Metrics: program.NoMetrics(), HealthProbeBindAddress: program.NoAddress,
		LeaderElection: o.election.LeaderElect, LeaderElectionID: o.election.ResourceName,
		LeaderElectionNamespace: o.election.ResourceNamespace, LeaderElectionResourceLock: o.election.ResourceLock,
		LeaseDuration: &o.election.LeaseDuration.Duration, RenewDeadline: &o.election.RenewDeadline.Duration,
		RetryPeriod: &o.election.RetryPeriod.Duration,
		// This setting is safe: the program exits when the manager ends, so no code of a leader runs after the lease is released.
		LeaderElectionReleaseOnCancel: true,
	})
	if o.multikueue && meta.IsNoMatchError(err) {
		return nil, fmt.Errorf("--multikueue: install Kueue 0.15 or later on the hub, or remove the flag; until then, no Placement is decided: %w", err)
	}
	if err != nil {
		return nil, err
	}
	ping := map[string]healthz.Checker{"ping": healthz.Ping}
	if err := o.Serve(mgr, program.Checks{Live: ping, Ready: ping}); err != nil {
		return nil, err
	}
	return mgr, o.addControllers(mgr, measured)
}

// named is set after the first manager of this process has added its controllers. controller-runtime accepts each controller
// name only once per process. Tests create several managers, so only the first manager checks the names.
var named atomic.Bool

// addControllers adds the controllers and the debug server to the manager.
func (o *options) addControllers(mgr manager.Manager, measured *metrics.Metrics) error {
	again := named.Swap(true)
	if o.bindings {
		if err := binding.Add(mgr); err != nil {
			return err
		}
	}
	if o.multikueue {
		if err := multikueue.Add(mgr, multikueue.Options{Round: o.round, SkipNameValidation: again}); err != nil {
			return err
		}
	}
	scheduling, err := measured.Scheduling()
	if err != nil {
		return err
	}
	scheduling.Tick = o.tick
	if err := o.addDebugging(mgr); err != nil {
		return err
	}
	return controller.Add(mgr, controller.Options{
		All: o.all, Workers: o.workers, Timeouts: o.timeouts, Scheduler: scheduling, Observer: measured, SkipNameValidation: again,
		Inventory: o.where(), ProfileDecisions: o.profileDecisions,
	})
}

// addDebugging adds the server for previews of Placements, if it has an address.
func (o *options) addDebugging(mgr manager.Manager) error {
	if o.debug == program.NoAddress {
		return nil
	}
	preview, err := controller.NewPreview(mgr.GetClient(), controller.Options{Scheduler: placement.Config{Tick: o.tick}, Timeouts: o.timeouts, Inventory: o.where()})
	if err != nil {
		return err
	}
	return debugserver.Add(mgr, debugserver.Options{Address: o.debug, CertDir: o.debugCerts, Placements: preview, All: o.all})
}

// measure adds the metrics of placement to controller-runtime's registry. All managers of the process share the metrics.
var measure = sync.OnceValues(func() (*metrics.Metrics, error) {
	return metrics.New(metrics.Options{Registerer: ctrlmetrics.Registry})
})
