// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"fmt"
	"time"

	"github.com/celset/celset/test/controlplane"
)

// StartDriver starts a topology driver for the node, with flags for its devices, and returns when the kubelet has registered
// it. name is the name of the process, unique among drivers. By default the driver is an administrator of the cluster; the flag
// --kubeconfig changes that. The driver runs until it is stopped, the context ends or the control plane stops. Node.Stop does
// not stop it.
func (n *Node) StartDriver(ctx context.Context, name string, flags ...string) (*controlplane.Process, error) {
	ports, err := controlplane.FreePorts(2)
	if err != nil {
		return nil, err
	}
	health := fmt.Sprintf("127.0.0.1:%d", ports[0])
	serving := fmt.Sprintf("127.0.0.1:%d", ports[1])
	return n.cp.StartProgram(ctx, controlplane.Program{
		Name:   n.processName(name),
		Binary: controlplane.TopologyDriver,
		Args: append([]string{
			"--kubeconfig=" + n.cp.Kubeconfig(),
			"--node-name=" + n.name,
			"--kubelet-root-dir=" + n.KubeletDir(),
			"--cdi-dir=" + n.CDIDir(),
			"--health-probe-bind-address=" + health,
			"--metrics-bind-address=" + serving,
		}, flags...),
		Endpoint: "http://" + serving,
		Ready: func(ctx context.Context, _ *controlplane.Process) error {
			return controlplane.Probe(ctx, "http://"+health+"/readyz")
		},
		Grace: 5 * time.Second,
	})
}
