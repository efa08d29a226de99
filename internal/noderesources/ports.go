// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package noderesources

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

type quantity = resource.Quantity

// anyAddress is the host IP of a port that is open on all addresses of the node.
const anyAddress = "0.0.0.0"

// A port is a host port that a container opens.
type port struct {
	address  string
	protocol corev1.Protocol
	number   int32
}

// portsOf returns the host ports of the containers of a pod that run at the same time: all containers and the sidecars among
// the init containers. Other init containers end before the containers start.
func portsOf(pod *corev1.Pod) (ports []port) {
	isSidecar := func(c *corev1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
	}
	for i, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if i < len(pod.Spec.InitContainers) && !isSidecar(&c) {
			continue
		}
		for _, p := range c.Ports {
			if p.HostPort > 0 {
				ports = append(ports, port{cmp.Or(p.HostIP, anyAddress), cmp.Or(p.Protocol, corev1.ProtocolTCP), p.HostPort})
			}
		}
	}
	return ports
}

func (p port) conflicts(other port) bool {
	return p.number == other.number && p.protocol == other.protocol &&
		(p.address == other.address || p.address == anyAddress || other.address == anyAddress)
}
