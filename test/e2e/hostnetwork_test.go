// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/internal/controlplane"
)

// hostNetwork has pods run in the network of the machine, since package realnode has no other: there
// they need ports of their own, and the address of the API server, and the API server that of the
// webhook. The directory of CDI specifications is that of the node.
type hostNetwork struct {
	apiServer *url.URL
	cdiDir    string
	// image is called with the image of each pod.
	image func(string)
	// ports are those of the programs, by the names that they have in the containers.
	ports map[string]map[string]int
}

// portFlags say which flags set the ports of a program.
var portFlags = map[string]map[string]string{
	"celset-scheduler":       {"https": "--secure-port=%d"},
	"celset-placement":       {"health": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d"},
	"celset-webhook":         {"probes": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d", "webhook": "--webhook-port=%d"},
	"celset-topology-driver": {"health": "--health-probe-bind-address=:%d", "metrics": "--metrics-bind-address=:%d"},
}

func newHostNetwork(t *testing.T, apiServer, cdiDir string) *hostNetwork {
	t.Helper()
	address, err := url.Parse(apiServer)
	require.NoError(t, err)
	network := &hostNetwork{apiServer: address, cdiDir: cdiDir, ports: map[string]map[string]int{}}
	count := 0
	for _, flags := range portFlags {
		count += len(flags)
	}
	free, err := controlplane.FreePorts(count)
	require.NoError(t, err)
	for program, flags := range portFlags {
		network.ports[program] = map[string]int{}
		for name := range flags {
			network.ports[program][name], free = free[0], free[1:]
		}
	}
	return network
}

// adapt changes what runs pods, and who calls webhooks. Everything else is as it was.
func (n *hostNetwork) adapt(t *testing.T, object *unstructured.Unstructured) *unstructured.Unstructured {
	t.Helper()
	switch object.GetKind() {
	case "Deployment", "DaemonSet":
		fields, found, err := unstructured.NestedMap(object.Object, "spec", "template")
		require.NoError(t, err)
		require.True(t, found)
		var template corev1.PodTemplateSpec
		convert(t, fields, &template)
		n.adaptPod(t, &template.Spec)
		require.NoError(t, unstructured.SetNestedMap(object.Object, unstructuredOf(t, &template), "spec", "template"))
	case "ValidatingWebhookConfiguration":
		var configuration admissionv1.ValidatingWebhookConfiguration
		convert(t, object.Object, &configuration)
		for i := range configuration.Webhooks {
			called := &configuration.Webhooks[i].ClientConfig
			require.Equal(t, "celset-webhook", called.Service.Name)
			address := fmt.Sprintf("https://localhost:%d%s", n.ports["celset-webhook"]["webhook"], *called.Service.Path)
			called.URL, called.Service = &address, nil
		}
		object.Object = unstructuredOf(t, &configuration)
	}
	return object
}

func (n *hostNetwork) adaptPod(t *testing.T, pod *corev1.PodSpec) {
	t.Helper()
	pod.HostNetwork = true
	container := &pod.Containers[0]
	n.image(container.Image)
	container.Env = append(container.Env,
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_HOST", Value: n.apiServer.Hostname()},
		corev1.EnvVar{Name: "KUBERNETES_SERVICE_PORT", Value: n.apiServer.Port()})
	flags := portFlags[container.Name]
	require.Len(t, container.Ports, len(flags))
	for i := range container.Ports {
		declared := &container.Ports[i]
		port := n.ports[container.Name][declared.Name]
		require.NotZero(t, port, "%s of %s", declared.Name, container.Name)
		declared.ContainerPort = int32(port)
		container.Args = append(container.Args, fmt.Sprintf(flags[declared.Name], port))
	}
	for _, volume := range pod.Volumes {
		if volume.Name == "cdi" {
			volume.HostPath.Path = n.cdiDir
		}
	}
}

func convert(t *testing.T, fields map[string]any, object any) {
	t.Helper()
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, object, true))
}

func unstructuredOf(t *testing.T, object any) map[string]any {
	t.Helper()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	require.NoError(t, err)
	return fields
}
