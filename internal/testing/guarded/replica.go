// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package guarded

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/celset/celset/internal/controlplane"
	"github.com/celset/celset/internal/testing/render"
)

// Binary is the program, which has to be built.
const Binary = "celset-webhook"

var loopback = net.IPv4(127, 0, 0, 1)

// Options are those of a replica.
type Options struct {
	// Name of the process, which no other one has that runs.
	Name string
	// Kubeconfig is the path of one for the account of the webhook, or for a way to the API server that acts as it.
	Kubeconfig string
	// Grace is --guard-grace, Lease --guard-lease-duration. The other times of the lease follow from it.
	Grace, Lease time.Duration
	// Unready has Start return when the program runs, and not only when it is ready.
	Unready bool
}

// Replica is a process. Its metrics are at /metrics of Process.Get.
type Replica struct {
	*controlplane.Process
	// Address is where it serves the webhooks, host and port.
	Address string
}

// Start starts the program with the rendered flags, but for paths, addresses and times.
func (o *Overlay) Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Replica, error) {
	deployment, err := render.Find(o.objects, "Deployment", "celset-webhook")
	if err != nil {
		return nil, err
	}
	args, err := render.Args(deployment)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(args, "--guard-allocations") {
		return nil, fmt.Errorf("the overlay starts no guard: %v", args)
	}
	ports, err := controlplane.FreePorts(3)
	if err != nil {
		return nil, err
	}
	webhooks, probes, metrics := local(ports[0]), local(ports[1]), local(ports[2])
	args = append(slices.DeleteFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, "--guard-pod=")
	}),
		"--kubeconfig="+options.Kubeconfig, "--certificates=files", "--cert-dir="+o.certificates,
		"--webhook-bind-host="+loopback.String(), fmt.Sprintf("--webhook-port=%d", ports[0]),
		"--health-probe-bind-address="+probes, "--metrics-bind-address="+metrics, "--metrics-secure=false",
		"--guard-grace="+options.Grace.String(), "--guard-lease-duration="+options.Lease.String(),
		"--guard-renew-deadline="+(options.Lease*4/5).String(), "--guard-retry-period=500ms",
	)
	path := "/readyz"
	if options.Unready {
		path = "/healthz"
	}
	p, err := cp.StartProgram(ctx, controlplane.Program{
		Name: options.Name, Binary: Binary, Args: args, Endpoint: "http://" + metrics, Grace: 10 * time.Second,
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return controlplane.Probe(ctx, "http://"+probes+path)
		},
	})
	if err != nil {
		return nil, err
	}
	return &Replica{Process: p, Address: webhooks}, nil
}

func local(port int) string { return net.JoinHostPort(loopback.String(), strconv.Itoa(port)) }

// IsActive tells whether it is the replica that judges.
func (r *Replica) IsActive(ctx context.Context) bool {
	metrics, err := r.Get(ctx, "/metrics")
	return err == nil && strings.Contains(string(metrics), "celset_guard_active 1")
}
