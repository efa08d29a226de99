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
	// Name of the process, unique among running processes. Empty: the base name of the binary.
	Name string

	// Binary is the path of the program, which must take kube-scheduler's flags. Empty: celset-scheduler of the binary directory,
	// brought up to date first unless the control plane's options set Prebuilt.
	Binary string

	// ConfigFile is the path of a KubeSchedulerConfiguration and Config is its content; at most one is set. With neither, the
	// scheduler uses defaults.
	//
	// The scheduler gets a copy of the configuration. There, clientConnection.kubeconfig is Kubeconfig or User's kubeconfig, because
	// --kubeconfig is ignored beside --config. Leader election is off unless the configuration turns it on.
	ConfigFile string
	Config     []byte

	// User is the user of the scheduler: a name in Options.Users of the control plane, for a scheduler under RBAC. Empty: AdminUser.
	User string

	// Kubeconfig is the path of a kubeconfig that replaces User's, for example for a scheduler that reaches the API server through a
	// proxy.
	Kubeconfig string

	// LeaderElect turns leader election on, unless the configuration sets it.
	LeaderElect bool

	// Standby is set if the scheduler may wait for a lease that another scheduler holds. StartScheduler then returns when it runs.
	Standby bool

	// FeatureGates are gates of the scheduler and of Kubernetes.
	FeatureGates map[string]bool

	// Args are further flags. They override flags of ours with the same name.
	Args []string
}

// StartScheduler starts a scheduler and returns when it is ready: all informers are synced and, with leader election, it is
// elected. It runs until it is stopped, the context ends or the control plane stops.
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

// schedulerConfigSource returns the given configuration and its name for errors.
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
