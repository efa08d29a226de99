// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// schedulerGrace is the time that a scheduler has to finish its bindings and release its lease.
const schedulerGrace = 10 * time.Second

// SchedulerOptions configure the scheduler of StartScheduler.
type SchedulerOptions struct {
	// Name is the name of the process, unique among running processes. Empty means the base name of the binary.
	Name string

	// Binary is the path of a program with kube-scheduler's flags. Empty means celset-scheduler in the binary directory; it is
	// built first if it is out of date, unless the control plane's options set Prebuilt.
	Binary string

	// ConfigFile is the path of a KubeSchedulerConfiguration and Config is its content; at most one is set. With neither, the
	// scheduler uses defaults.
	//
	// The scheduler gets a copy of the configuration. In the copy, clientConnection.kubeconfig is set to Kubeconfig or the
	// kubeconfig of User, because kube-scheduler ignores --kubeconfig if it has --config. Leader election is off in the copy
	// unless the configuration sets it.
	ConfigFile string
	Config     []byte

	// User is the user as which the scheduler runs: a name in Options.Users of the control plane, whose rights come from RBAC.
	// Empty means AdminUser.
	User string

	// Kubeconfig is the path of a kubeconfig to use instead of the kubeconfig of User. An example is a connection to the API
	// server through a proxy.
	Kubeconfig string

	// LeaderElect turns leader election on, unless the configuration has its own setting.
	LeaderElect bool

	// Standby is set if another scheduler may hold the lease. StartScheduler then returns when the process runs, before the
	// scheduler is elected.
	Standby bool

	// FeatureGates are the scheduler's feature gates, of celset and of Kubernetes.
	FeatureGates map[string]bool

	// Args are additional flags. If this package sets a flag of the same name, they override it.
	Args []string
}

// StartScheduler starts a scheduler and returns when it is ready: all informers are synced and, with leader election, it is
// elected. The scheduler runs until it is stopped, the context ends or the control plane stops.
func (cp *ControlPlane) StartScheduler(ctx context.Context, options SchedulerOptions) (*Process, error) {
	binary, err := cp.schedulerBinary(ctx, options.Binary)
	if err != nil {
		return nil, err
	}
	if options.Name == "" {
		options.Name = filepath.Base(binary)
	}
	config, err := cp.writeSchedulerConfig(options)
	if err != nil {
		return nil, fmt.Errorf("scheduler %s: %w", options.Name, err)
	}
	ports, err := FreePorts(1)
	if err != nil {
		return nil, err
	}
	p, err := cp.supervisor.startOne(ctx, command{
		name:   options.Name,
		binary: binary,
		args: slices.Concat(
			cp.pki.servingArgs(ports[0]),
			delegationArgs(cp.Kubeconfig()),
			[]string{"--config=" + config},
			featureGateArgs(options.FeatureGates),
			options.Args,
		),
		endpoint: "https://" + address(ports[0]),
		client:   cp.adminClient,
		grace:    schedulerGrace,
	}, func(p *Process) func(context.Context) error {
		if options.Standby {
			return p.probePath("/livez")
		}
		return p.probePath("/readyz")
	})
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, p.Stop)
	return p, nil
}

func (cp *ControlPlane) schedulerBinary(ctx context.Context, binary string) (string, error) {
	if binary != "" {
		return filepath.Abs(binary)
	}
	if !cp.options.Prebuilt {
		if _, err := buildBinaries(ctx, cp.binDir, cp.progress, []string{CelsetScheduler}); err != nil {
			return "", err
		}
	}
	return filepath.Join(cp.binDir, CelsetScheduler), nil
}

// writeSchedulerConfig writes the scheduler's configuration and returns its path.
func (cp *ControlPlane) writeSchedulerConfig(options SchedulerOptions) (string, error) {
	kubeconfig, err := cp.schedulerKubeconfig(options)
	if err != nil {
		return "", err
	}
	source, content, err := schedulerConfigSource(options)
	if err != nil {
		return "", err
	}
	local, err := localSchedulerConfig(content, kubeconfig, options.LeaderElect)
	if err != nil {
		return "", fmt.Errorf("%s: %w", source, err)
	}
	path := filepath.Join(cp.dir, options.Name+".yaml")
	return path, os.WriteFile(path, local, 0o600)
}

func (cp *ControlPlane) schedulerKubeconfig(options SchedulerOptions) (string, error) {
	switch {
	case options.User != "" && options.Kubeconfig != "":
		return "", errors.New("both User and Kubeconfig are given: leave one out")
	case options.Kubeconfig != "":
		return filepath.Abs(options.Kubeconfig)
	case options.User != "":
		return cp.KubeconfigFor(options.User)
	default:
		return cp.Kubeconfig(), nil
	}
}

// schedulerConfigSource returns the content of the given configuration. source is its name in errors.
func schedulerConfigSource(options SchedulerOptions) (source string, content []byte, err error) {
	switch {
	case options.ConfigFile != "" && options.Config != nil:
		return "", nil, errors.New("both ConfigFile and Config are given: leave one out")
	case options.ConfigFile != "":
		content, err = os.ReadFile(options.ConfigFile)
		return options.ConfigFile, content, err
	case options.Config != nil:
		return "Config", options.Config, nil
	default:
		return "default configuration", []byte(defaultSchedulerConfig), nil
	}
}
