// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"

	"github.com/spf13/pflag"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/celset/celset/admission"
	"github.com/celset/celset/admission/webhook"
	"github.com/celset/celset/internal/program"
	"github.com/celset/celset/internal/serving/managed"
	placementadmission "github.com/celset/celset/placement/admission"
)

// options holds the flags.
type options struct {
	program.ManagerOptions
	address       string
	namespace     string
	certificates  certificateOptions
	schedulers    []string
	devices       int
	placements    bool
	allPlacements bool
	guard         guardOptions
}

func newOptions() *options {
	return &options{
		ManagerOptions: program.NewManagerOptions(100),
		address:        ":9443", namespace: "celset-system", certificates: newCertificateOptions(),
		schedulers: []string{admission.DefaultSchedulerName}, devices: admission.DefaultDevices,
		guard: newGuardOptions(),
	}
}

func (o *options) AddFlags(flags *pflag.FlagSet) {
	o.ManagerOptions.AddFlags(flags)
	flags.StringVar(&o.address, "webhook-bind-address", o.address, "Address of the webhooks.")
	flags.StringVar(&o.namespace, "namespace", o.namespace, "Namespace of the webhook's Services, of the Secret with its certificates, and of the lease of the guard.")
	o.certificates.addFlags(flags)
	flags.StringSliceVar(&o.schedulers, "scheduler-names", o.schedulers, "Names of the scheduler profiles that support CEL device constraints. The webhook warns about pods that have such constraints and another scheduler name, and recommends the first name.")
	flags.IntVar(&o.devices, "devices-per-node", o.devices, "Number of matching devices per node and request that warnings about the number of sets assume.")
	flags.BoolVar(&o.placements, "check-placements", o.placements, "Also check the Placements that celset-placement decides.")
	flags.BoolVar(&o.allPlacements, "all-placements", o.allPlacements, "Check all Placements that are not disabled. Set this flag if it is set for celset-placement.")
	o.guard.addFlags(flags)
}

// validate returns an error for each invalid flag.
func (o *options) validate() error {
	errs := []error{o.Validate()}
	if o.devices < 1 {
		errs = append(errs, fmt.Errorf("--devices-per-node: %d is not positive; use at least 1", o.devices))
	}
	if len(o.schedulers) == 0 || slices.Contains(o.schedulers, "") {
		errs = append(errs, errors.New("--scheduler-names: the list is empty; use names of scheduler profiles, separated by commas"))
	}
	_, port, err := net.SplitHostPort(o.address)
	if number, _ := strconv.Atoi(port); err != nil || len(validation.IsValidPortNum(number)) > 0 {
		errs = append(errs, fmt.Errorf("--webhook-bind-address: %q is not an address with a port; use an address such as :9443", o.address))
	}
	if o.allPlacements && !o.placements {
		errs = append(errs, errors.New("--all-placements: has no effect without --check-placements; set both flags"))
	}
	errs = append(errs, o.certificates.validate(), o.guard.validate())
	return errors.Join(errs...)
}

// manager sets up the webhooks. All replicas serve them. Only the elected leader checks for double allocations.
func (o *options) manager(config *rest.Config) (manager.Manager, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	identity, ready, err := o.certificates.identity(config, o.namespace)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		return nil, err
	}
	mgr, err := manager.New(config, manager.Options{
		Scheme: scheme, Metrics: program.NoMetrics(), HealthProbeBindAddress: program.NoAddress,
		// The cache holds only DeviceClasses, so the webhook needs no right to list other objects.
		Cache:         cache.Options{ByObject: map[client.Object]cache.ByObject{&resourceapi.DeviceClass{}: {}}, ReaderFailOnMissingInformer: true},
		WebhookServer: managed.NewWebhooks(o.address, identity),
	})
	if err != nil {
		return nil, err
	}
	return mgr, o.register(mgr, ready)
}

// register adds the webhooks and probes.
func (o *options) register(mgr manager.Manager, certificate healthz.Checker) error {
	checker, err := admission.NewChecker(admission.Options{SchedulerNames: o.schedulers, Devices: o.devices})
	if err != nil {
		return err
	}
	classes, err := mgr.GetCache().GetInformer(context.Background(), &resourceapi.DeviceClass{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("cache of device classes: %w", err)
	}
	hooks := mgr.GetWebhookServer()
	if err := webhook.Register(hooks, checker, webhook.Readers{Cached: mgr.GetCache(), Live: mgr.GetAPIReader()}); err != nil {
		return err
	}
	if o.placements {
		if err := placementadmission.Register(hooks, placementadmission.Options{All: o.allPlacements}); err != nil {
			return err
		}
	}
	if o.guard.enabled {
		if err := o.guard.register(mgr, o.namespace); err != nil {
			return err
		}
	}
	return o.Serve(mgr, program.Checks{
		Live: map[string]healthz.Checker{"ping": healthz.Ping},
		Ready: map[string]healthz.Checker{
			"webhook":     hooks.StartedChecker(),
			"certificate": certificate,
			"classes": func(*http.Request) error {
				if !classes.HasSynced() {
					return errors.New("the device classes have not been listed yet")
				}
				return nil
			},
		},
	})
}
