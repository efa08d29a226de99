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

// DefaultName is the default name of the node and of its directory.
const DefaultName = "real-0"

// maxDir limits the path of a node's directory, in bytes. The kernel limits the paths of the sockets in the directory to 107 bytes.
const maxDir = 52

// Options configure the node of [Start]. The zero value is valid.
type Options struct {
	// Name of the Node object. Empty: DefaultName.
	Name string
	// Dir holds the node's files; its old content is deleted first. Empty: a folder with the node's name in the data directory of
	// the control plane.
	Dir string
	// Labels are added to the labels that the kubelet sets.
	Labels map[string]string
}

// A Node is a node that runs or has run. Its methods may be called concurrently.
type Node struct {
	cp     *controlplane.ControlPlane
	name   string
	dir    string
	labels map[string]string

	// A restarted kubelet keeps the ports, because the API server uses the address that the former kubelet reported.
	kubeletPort, healthzPort int

	init *controlplane.Process

	mu      sync.Mutex
	kubelet *controlplane.Process

	stopOnce sync.Once
	stopErr  error
}

// Start starts a node in a control plane and returns when it is Ready. It runs until
// Stop is called or the context ends. Stop it before the control plane.
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

// prepare recreates the node's directory and cgroups from scratch.
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

// startInit starts the process whose end ends all other processes of the node.
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

// Stop ends the node with all its containers, and returns when all remains are gone; otherwise the error lists the remains.
// Stopping again does nothing and returns the same error.
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

// path is a path in the node's directory.
func (n *Node) path(elements ...string) string {
	return filepath.Join(append([]string{n.dir}, elements...)...)
}

// Name of the Node object.
func (n *Node) Name() string { return n.name }

// Dir is the directory of the node's files.
func (n *Node) Dir() string { return n.dir }

// KubeletDir is the kubelet's root directory, which contains the sockets of plugins.
func (n *Node) KubeletDir() string { return n.path("kubelet") }

// CDIDir is containerd's directory of CDI specifications.
func (n *Node) CDIDir() string { return n.path("cdi") }

// socket is the path of containerd's socket.
func (n *Node) socket() string { return n.path("containerd.sock") }

// processName is the name of one of the node's processes.
func (n *Node) processName(binary string) string {
	return strings.Join([]string{n.name, binary}, "-")
}
