// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/celset/celset/test/controlplane"
)

// DefaultName is the default for the names of the node and of its directory.
const DefaultName = "real-0"

// maxDir is the maximum length in bytes of the path of a node's directory. It contains sockets, and the kernel limits the path
// of a socket to 107 bytes.
const maxDir = 52

// Options configure the node of [Start]. The zero value is valid.
type Options struct {
	// Name is the name of the Node object. Empty means DefaultName.
	Name string
	// Dir is the directory for the node's files. Start deletes its old content. Empty means a directory with the node's name in
	// the control plane's data directory.
	Dir string
	// Labels are set on the Node object, in addition to the kubelet's labels.
	Labels map[string]string
}

// A Node is a node that runs or has run. Its methods may be called concurrently.
type Node struct {
	cp     *controlplane.ControlPlane
	name   string
	dir    string
	labels map[string]string

	// The ports of the kubelet stay the same when the kubelet is restarted, because the API server uses the address in the Node
	// object.
	kubeletPort, healthzPort int

	init *controlplane.Process

	mu      sync.Mutex
	kubelet *controlplane.Process

	stopOnce sync.Once
	stopErr  error
}

// Start starts a node in a control plane and returns when it is Ready. The node runs until Stop is called or the context ends.
// The caller must stop the node before the control plane.
func Start(ctx context.Context, cp *controlplane.ControlPlane, options Options) (*Node, error) {
	n, err := newNode(cp, options)
	if err != nil {
		return nil, fmt.Errorf("start node: %w", err)
	}
	if err := n.start(ctx); err != nil {
		return nil, fmt.Errorf("start node %s: %w", n.name, errors.Join(err, n.Stop()))
	}
	context.AfterFunc(ctx, func() { _ = n.Stop() })
	return n, nil
}

func newNode(cp *controlplane.ControlPlane, options Options) (*Node, error) {
	if err := Unavailable(); err != nil {
		return nil, err
	}
	n := &Node{cp: cp, name: options.Name, dir: options.Dir, labels: options.Labels}
	if n.name == "" {
		n.name = DefaultName
	}
	if n.dir == "" {
		n.dir = filepath.Join(cp.DataDir(), n.name)
	}
	var err error
	if n.dir, err = filepath.Abs(n.dir); err != nil {
		return nil, err
	}
	if len(n.dir) > maxDir {
		return nil, fmt.Errorf("the directory %s has %d characters, and sockets below it would have more than the kernel allows: choose one with %d at most", n.dir, len(n.dir), maxDir)
	}
	ports, err := controlplane.FreePorts(2)
	if err != nil {
		return nil, err
	}
	n.kubeletPort, n.healthzPort = ports[0], ports[1]
	return n, nil
}

func (n *Node) start(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		n.prepare, n.register, n.startInit, n.startContainerd, n.importImage, n.StartKubelet, n.waitReady,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare removes the node's old directory and cgroups, and creates them again.
func (n *Node) prepare(context.Context) error {
	if err := clean(n.dir); err != nil {
		return fmt.Errorf("clean up after a former run: %w", err)
	}
	if err := os.RemoveAll(n.dir); err != nil {
		return err
	}
	for _, dir := range []string{n.KubeletDir(), n.CDIDir(), n.path("cni"), n.path("private")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return makeCgroups(cgroupName(n.dir))
}

// startInit starts nodeinit. When nodeinit ends, the kernel ends all other processes of the node.
func (n *Node) startInit(ctx context.Context) (err error) {
	ready := n.path("init-ready")
	n.init, err = n.cp.StartProgram(ctx, controlplane.Program{
		Name:   n.processName("init"),
		Binary: controlplane.NodeInit,
		Args:   append([]string{ready, n.path("private")}, hostDirs...),
		Ready: func(context.Context, *controlplane.Process) error {
			_, err := os.Stat(ready)
			return err
		},
		Isolated: true,
	})
	return err
}

// Stop ends the node with all its containers, and returns when processes, mounts and cgroups are gone. If some are left, the
// error lists them. A second call does nothing and returns the same error.
func (n *Node) Stop() error {
	n.stopOnce.Do(func() {
		n.StopKubelet()
		if n.init != nil {
			n.init.Stop()
		}
		n.stopErr = clean(n.dir)
	})
	return n.stopErr
}

// path returns a path in the node's directory.
func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.dir}, elements...)...)
}

// Name returns the name of the Node object.
func (n *Node) Name() string { return n.name }

// Dir returns the directory of the node's files.
func (n *Node) Dir() string { return n.dir }

// KubeletDir returns the root directory of the kubelet. It contains the sockets of plugins.
func (n *Node) KubeletDir() string { return n.path("kubelet") }

// CDIDir returns containerd's directory of CDI specs.
func (n *Node) CDIDir() string { return n.path("cdi") }

// socket returns the path of containerd's socket.
func (n *Node) socket() string { return n.path("containerd.sock") }

// processName returns the name that a process of the node has in the control plane.
func (n *Node) processName(binary string) string {
	return strings.Join([]string{n.name, binary}, "-")
}
