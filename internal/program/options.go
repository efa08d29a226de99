// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package program

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/celset/celset/internal/serving"
	"github.com/celset/celset/internal/serving/managed"
)

// NoAddress is the value of an address flag that turns the server off.
const NoAddress = "0"

// Options has the flags that all programs share.
type Options struct {
	// Kubeconfig is the path of a kubeconfig file. It is empty in a pod. QPS and Burst limit requests to the API server.
	Kubeconfig string
	QPS        float32
	Burst      int
	// Health is the address that serves probes, and Metrics the address that serves metrics.
	Health, Metrics string

	logging *logsapi.LoggingConfiguration
}

// NewOptions returns default options. qps is the number of requests per second to the API server, and a burst may have twice as
// many. metrics is the address of metrics.
func NewOptions(qps int, metrics string) Options {
	return Options{QPS: float32(qps), Burst: 2 * qps, Health: ":8081", Metrics: metrics, logging: logsapi.NewLoggingConfiguration()}
}

// AddFlags adds a flag for each option. The current values of the options are the defaults of the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig, "Path of a kubeconfig. The default is the service account of the pod.")
	flags.Float32Var(&o.QPS, "kube-api-qps", o.QPS, "Maximum number of requests per second to the API server.")
	flags.IntVar(&o.Burst, "kube-api-burst", o.Burst, "Maximum number of requests to the API server in a burst.")
	flags.StringVar(&o.Health, "health-probe-bind-address", o.Health, "Address of /healthz and /readyz. Use 0 to disable it.")
	flags.StringVar(&o.Metrics, "metrics-bind-address", o.Metrics, "Address of /metrics. Use 0 to disable it.")
	logsapi.AddFlags(o.logging, flags)
}

// Validate returns an error for each empty address.
func (o *Options) Validate() error {
	var errs []error
	for _, given := range []struct{ flag, address string }{
		{"--health-probe-bind-address", o.Health}, {"--metrics-bind-address", o.Metrics},
	} {
		if given.address == "" {
			errs = append(errs, fmt.Errorf("%s is empty; remove the flag to use the default, or use 0 to disable it", given.flag))
		}
	}
	return errors.Join(errs...)
}

// ClientConfig returns the configuration of a client of the API server.
func (o *Options) ClientConfig() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", o.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("configuration of the client: %w; set --kubeconfig, or run in a pod", err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	return config, nil
}

func (o *Options) applyLogging() error {
	if err := logsapi.ValidateAndApply(o.logging, nil); err != nil {
		return err
	}
	log.SetLogger(klog.Background())
	return nil
}

// ManagerOptions has the flags of programs with a controller-runtime manager.
type ManagerOptions struct {
	Options
	// Secure serves metrics over TLS to authorized clients only.
	Secure bool
}

// NewManagerOptions returns the defaults, as [NewOptions] does.
func NewManagerOptions(qps int) ManagerOptions {
	return ManagerOptions{Options: NewOptions(qps, ":8443"), Secure: true}
}

// AddFlags adds a flag for each option. The current values of the options are the defaults of the flags.
func (o *ManagerOptions) AddFlags(flags *pflag.FlagSet) {
	o.Options.AddFlags(flags)
	flags.BoolVar(&o.Secure, "metrics-secure", o.Secure, "Serve metrics over TLS, only to users that the API server authenticates and authorizes.")
}

// Checks has the health checks for /healthz (Live) and /readyz (Ready), by name.
type Checks struct{ Live, Ready map[string]healthz.Checker }

// Serve adds servers for probes and metrics to a manager. The manager must not have such servers of its own.
func (o *ManagerOptions) Serve(mgr manager.Manager, checks Checks) error {
	if err := RegisterBuildInfo(ctrlmetrics.Registry); err != nil {
		return err
	}
	metrics := promhttp.HandlerFor(ctrlmetrics.Registry, promhttp.HandlerOpts{})
	var identity *tls.Config
	if o.Secure {
		filter, err := filters.WithAuthenticationAndAuthorization(mgr.GetConfig(), mgr.GetHTTPClient())
		if err != nil {
			return fmt.Errorf("access to metrics: %w", err)
		}
		if metrics, err = filter(mgr.GetLogger(), metrics); err != nil {
			return fmt.Errorf("access to metrics: %w", err)
		}
		if identity, err = serving.SelfSigned(); err != nil {
			return fmt.Errorf("certificate of metrics: %w", err)
		}
	}
	return errors.Join(
		addServer(mgr, "--health-probe-bind-address", o.Health, nil, Probes(checks)),
		addServer(mgr, "--metrics-bind-address", o.Metrics, identity, at(metricsPath, metrics)),
	)
}

func addServer(mgr manager.Manager, flag, address string, identity *tls.Config, handler http.Handler) error {
	if address == NoAddress {
		return nil
	}
	listener, err := serving.Listen(context.Background(), address)
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	if identity != nil {
		listener = tls.NewListener(listener, identity)
	}
	return mgr.Add(managed.NewServer(context.Background(), flag, listener, handler))
}

// NoMetrics returns options that turn off the manager's own metrics server, because [ManagerOptions.Serve] adds one.
func NoMetrics() server.Options { return server.Options{BindAddress: NoAddress} }

// metricsPath is the path at which metrics are served.
const metricsPath = "/metrics"

func at(path string, handler http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle(path, handler)
	return mux
}

// Probes returns a handler for /healthz and /readyz, and for each check a path below one of these.
func Probes(checks Checks) http.Handler {
	mux := http.NewServeMux()
	for path, of := range map[string]map[string]healthz.Checker{"/healthz": checks.Live, "/readyz": checks.Ready} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: of})
		mux.Handle(path, handler)
		mux.Handle(path+"/", handler)
	}
	return mux
}

// Run calls build and runs the manager that build returns, until the context ends or leadership is lost.
func (o *ManagerOptions) Run(ctx context.Context, build func(*rest.Config) (manager.Manager, error)) error {
	config, err := o.ClientConfig()
	if err != nil {
		return err
	}
	mgr, err := build(config)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
