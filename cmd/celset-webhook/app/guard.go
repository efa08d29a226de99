// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/celset/celset/admission/guard"
	"github.com/celset/celset/admission/guard/server"
	"github.com/celset/celset/apis/wellknown"
)

// guardOptions holds the flags of the webhook that rejects double allocations of devices.
type guardOptions struct {
	enabled  bool
	pod      string
	grace    time.Duration
	election server.Election
}

func newGuardOptions() guardOptions {
	return guardOptions{grace: guard.DefaultGrace, election: server.DefaultElection()}
}

func (o *guardOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.enabled, "guard-allocations", o.enabled, "Also reject allocations of devices that are in use by another claim, or that were just admitted for another claim. This applies to all schedulers.")
	flags.StringVar(&o.pod, "guard-pod", o.pod, "Name of the pod of this replica. While the replica is the leader, the pod has the label "+wellknown.LabelGuard+"="+wellknown.GuardActive+", which the Service of the guard selects. By default, no label is written.")
	flags.DurationVar(&o.grace, "guard-grace", o.grace, "Longest time between the admission of an allocation and its storage. A new leader waits for this time before it admits allocations.")
	flags.DurationVar(&o.election.LeaseDuration, "guard-lease-duration", o.election.LeaseDuration, "Time that the other replicas wait for the leader to renew the lease celset-guard.")
	flags.DurationVar(&o.election.RenewDeadline, "guard-renew-deadline", o.election.RenewDeadline, "Time for which the leader admits allocations without renewing the lease.")
	flags.DurationVar(&o.election.RetryPeriod, "guard-retry-period", o.election.RetryPeriod, "Period after which replicas try to acquire or renew the lease.")
}

// validate returns an error for each invalid flag.
func (o *guardOptions) validate() error {
	if !o.enabled {
		return nil
	}
	errs := []error{o.election.Validate()}
	if o.grace <= 0 {
		errs = append(errs, fmt.Errorf("--guard-grace: %s is too short, because an API server may take 34s to store an object; use a longer time", o.grace))
	}
	return errors.Join(errs...)
}

// register adds the webhook against double allocations, and its leader election.
func (o *guardOptions) register(mgr manager.Manager, namespace string) error {
	// The client has no rate limit of its own, because the API server waits for the webhook's answer. The API server's priority
	// and fairness still applies.
	config := rest.CopyConfig(mgr.GetConfig())
	config.QPS, config.Burst = -1, 0
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("client of the guard: %w", err)
	}
	measured, err := measure()
	if err != nil {
		return err
	}
	s, err := server.New(server.Options{
		Client: client, Namespace: namespace, Pod: o.pod, Election: o.election, Grace: o.grace, Metrics: measured,
	})
	if err != nil {
		return err
	}
	mgr.GetWebhookServer().Register(server.Path, s)
	return mgr.Add(s)
}

// measure adds the metrics of the webhook against double allocations to controller-runtime's registry. All managers of the
// process share the metrics.
var measure = sync.OnceValues(func() (*server.Metrics, error) { return server.NewMetrics(ctrlmetrics.Registry) })
