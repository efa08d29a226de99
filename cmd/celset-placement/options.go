// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	componentbaseconfig "k8s.io/component-base/config"
	configoptions "k8s.io/component-base/config/options"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/component-base/version/verflag"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/placement"
	"github.com/celset/celset/placement/binding"
	"github.com/celset/celset/placement/controller"
	debugserver "github.com/celset/celset/placement/debug/server"
	"github.com/celset/celset/placement/metrics"
)

// options are what the flags say.
type options struct {
	kubeconfig string
	qps        float32
	burst      int
	all        bool
	bindings   bool
	workers    int
	health     string
	metrics    string
	secure     bool
	debug      string
	debugCerts string
	election   componentbaseconfig.LeaderElectionConfiguration
	logging    *logsapi.LoggingConfiguration
	// several allows more than one program in a process, one after the other.
	several bool
}

// noAddress serves nothing.
const noAddress = "0"

func newOptions() *options {
	return &options{
		qps: 500, burst: 1000, workers: controller.DefaultWorkers,
		health: ":8081", metrics: ":8443", secure: true, debug: noAddress,
		election: componentbaseconfig.LeaderElectionConfiguration{
			LeaderElect:   true,
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second},
			RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod:   metav1.Duration{Duration: 2 * time.Second},
			ResourceLock:  "leases", ResourceName: controller.Name,
		},
		logging: logsapi.NewLoggingConfiguration(),
	}
}

func (o *options) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.kubeconfig, "kubeconfig", o.kubeconfig, "Path of a kubeconfig of the hub. Without it, the service account of the pod is used.")
	flags.Float32Var(&o.qps, "kube-api-qps", o.qps, "Requests a second to the API server.")
	flags.IntVar(&o.burst, "kube-api-burst", o.burst, "Requests to the API server in a burst.")
	flags.BoolVar(&o.all, "all-placements", o.all, "Decide all Placements that are not disabled, not only those with the annotation celset.dev/placement. No other placement controller may run on the hub.")
	flags.BoolVar(&o.bindings, "bindings", o.bindings, "Also keep a ManagedClusterSetBinding for every set that the ServiceAccount placement of a namespace may bind.")
	flags.IntVar(&o.workers, "workers", o.workers, "How many Placements are decided at a time.")
	flags.StringVar(&o.health, "health-probe-bind-address", o.health, "Address of /healthz and /readyz; 0 for none.")
	flags.StringVar(&o.metrics, "metrics-bind-address", o.metrics, "Address of /metrics; 0 for none.")
	flags.BoolVar(&o.secure, "metrics-secure", o.secure, "Serve metrics over TLS, to those whom the API server authenticates and authorizes.")
	flags.StringVar(&o.debug, "debug-bind-address", o.debug, "Address of /debug/placements, which tells over TLS why a Placement selects what it selects, to those who may get it; 0 for none.")
	flags.StringVar(&o.debugCerts, "debug-cert-dir", o.debugCerts, "Directory with tls.crt and tls.key for the debug address. Without it, a self-signed certificate is made.")
	configoptions.BindLeaderElectionFlags(&o.election, flags)
	logsapi.AddFlags(o.logging, flags)
	verflag.AddFlags(flags)
}

// validate says which flags can't be.
func (o *options) validate() error {
	var errs []error
	if o.workers < 1 {
		errs = append(errs, fmt.Errorf("--workers: %d is not positive; give at least 1", o.workers))
	}
	if e := o.election; e.LeaderElect && (e.RetryPeriod.Duration <= 0 || e.RenewDeadline.Duration <= e.RetryPeriod.Duration || e.LeaseDuration.Duration <= e.RenewDeadline.Duration) {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration %s must be longer than --leader-elect-renew-deadline %s, and that longer than --leader-elect-retry-period %s",
			e.LeaseDuration.Duration, e.RenewDeadline.Duration, e.RetryPeriod.Duration))
	}
	if o.debug == "" {
		errs = append(errs, errors.New("--debug-bind-address is empty; give an address such as :8444, or 0 for none"))
	}
	return errors.Join(errs...)
}

// clientConfig says how to reach the hub.
func (o *options) clientConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configuration of the hub's client: %w; give --kubeconfig, or run in a pod", err)
	}
	config.QPS, config.Burst = o.qps, o.burst
	return config, nil
}

// manager sets all controllers up.
func (o *options) manager(config *rest.Config) (manager.Manager, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), controller.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	shown := server.Options{BindAddress: o.metrics, SecureServing: o.secure}
	if o.secure {
		shown.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Cache: binding.Cache(controller.Cache()), Metrics: shown, HealthProbeBindAddress: o.health,
		LeaderElection: o.election.LeaderElect, LeaderElectionID: o.election.ResourceName,
		LeaderElectionNamespace: o.election.ResourceNamespace, LeaderElectionResourceLock: o.election.ResourceLock,
		LeaseDuration: &o.election.LeaseDuration.Duration, RenewDeadline: &o.election.RenewDeadline.Duration,
		RetryPeriod: &o.election.RetryPeriod.Duration,
		// The program ends when the manager does, so nobody goes on as the leader.
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(mgr.AddHealthzCheck("ping", healthz.Ping), mgr.AddReadyzCheck("ping", healthz.Ping)); err != nil {
		return nil, err
	}
	return mgr, o.addControllers(mgr)
}

// addControllers adds what runs in the manager.
func (o *options) addControllers(mgr manager.Manager) error {
	if o.bindings {
		if err := binding.Add(mgr); err != nil {
			return err
		}
	}
	measured, err := measure()
	if err != nil {
		return err
	}
	scheduling, err := measured.Scheduling()
	if err != nil {
		return err
	}
	if err := o.addDebugging(mgr); err != nil {
		return err
	}
	return controller.Add(mgr, controller.Options{
		All: o.all, Workers: o.workers, Scheduler: scheduling, Observer: measured, SkipNameValidation: o.several,
	})
}

// addDebugging serves previews of Placements if there is an address to serve them at.
func (o *options) addDebugging(mgr manager.Manager) error {
	if o.debug == noAddress {
		return nil
	}
	preview, err := controller.NewPreview(mgr.GetClient(), placement.Config{}, nil)
	if err != nil {
		return err
	}
	return debugserver.Add(mgr, debugserver.Options{Address: o.debug, CertDir: o.debugCerts, Placements: preview, All: o.all})
}

// measure adds the metrics of placement to those that managers show. These are one
// set for the process, however many managers it has had.
var measure = sync.OnceValues(func() (*metrics.Metrics, error) {
	return metrics.New(metrics.Options{Registerer: ctrlmetrics.Registry})
})
