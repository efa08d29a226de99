// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package realnode

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/celset/celset/test/controlplane"
)

const (
	pollPeriod = 100 * time.Millisecond
	// patience is the limit for the time until a node is Ready. It takes seconds, or longer on a busy machine.
	patience = 2 * time.Minute
)

//go:embed kubelet.yaml.tmpl
var kubeletConfig string

// StartKubelet starts the kubelet and returns when it is healthy. The kubelet runs until the node or the kubelet is stopped, or
// the context ends. Start has already started a kubelet, so call StartKubelet only after StopKubelet or KillKubelet.
func (n *Node) StartKubelet(ctx context.Context) error {
	config := n.path("kubelet.yaml")
	if err := n.writeKubeletConfig(config); err != nil {
		return err
	}
	kubelet, err := n.cp.StartProgram(ctx, controlplane.Program{
		Name:   n.processName(controlplane.Kubelet),
		Binary: controlplane.Kubelet,
		Args: []string{
			"--config=" + config,
			"--kubeconfig=" + n.cp.Kubeconfig(),
			"--root-dir=" + n.KubeletDir(),
			"--cert-dir=" + n.path("pki"),
			"--hostname-override=" + n.name,
			// With this flag, the kubelet keeps the node's address that register has set. Without it, the kubelet looks for an
			// address outside of the loopback interface, and fails if the machine has no such address.
			"--cloud-provider=external",
			"--v=2",
		},
		Endpoint: "http://127.0.0.1:" + strconv.Itoa(n.healthzPort),
		Ready: func(ctx context.Context, p *controlplane.Process) error {
			_, err := p.Get(ctx, "/healthz")
			return err
		},
		Grace:  10 * time.Second,
		Beside: n.init,
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.kubelet = kubelet
	return err
}

func (n *Node) writeKubeletConfig(path string) error {
	tls := n.cp.KubeletTLS()
	return writeConfig(path, kubeletConfig, map[string]any{
		"Port": n.kubeletPort, "HealthzPort": n.healthzPort,
		"ServingCert": tls.ServingCert, "ServingKey": tls.ServingKey, "ClientCA": tls.ClientCA,
		"Endpoint": "unix://" + n.socket(), "CgroupRoot": "/" + cgroupName(n.dir),
		"PodLogsDir": n.path("pod-logs"), "VolumePluginDir": n.path("volume-plugins"),
	})
}

// StopKubelet ends the kubelet. The containers continue to run. If no kubelet runs, it does nothing.
func (n *Node) StopKubelet() {
	if kubelet := n.currentKubelet(); kubelet != nil {
		kubelet.Stop()
	}
}

// KillKubelet is like StopKubelet, but uses SIGKILL.
func (n *Node) KillKubelet() {
	if kubelet := n.currentKubelet(); kubelet != nil {
		kubelet.Kill()
	}
}

func (n *Node) currentKubelet() *controlplane.Process {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.kubelet
}

// register creates the Node object. Its address is the address at which the API server reaches the kubelet.
func (n *Node) register(ctx context.Context) error {
	nodes := n.cp.Client().CoreV1().Nodes()
	err := nodes.Delete(ctx, n.name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete the node of a former run: %w", err)
	}
	labels := map[string]string{corev1.LabelHostname: n.name}
	for name, value := range n.labels {
		labels[name] = value
	}
	node, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.name, Labels: labels}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
		{Type: corev1.NodeHostName, Address: n.name},
	}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// waitReady waits until the node is Ready.
func (n *Node) waitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, pollPeriod, patience, true, func(ctx context.Context) (bool, error) {
		node, err := n.cp.Client().CoreV1().Nodes().Get(ctx, n.name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		last = unready(node)
		return last == nil, n.currentKubelet().Err()
	})
	if err != nil {
		return fmt.Errorf("the node does not get Ready: %w", errors.Join(err, last))
	}
	return nil
}

// unready returns nil if the node is Ready. Otherwise it returns an error with the kubelet's reason.
func unready(node *corev1.Node) error {
	for _, condition := range node.Status.Conditions {
		if condition.Type != corev1.NodeReady {
			continue
		}
		if condition.Status == corev1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
	}
	return errors.New("the kubelet has not said anything yet")
}
