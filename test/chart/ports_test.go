// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/celset/celset/test/internal/env"
	"github.com/celset/celset/test/internal/helm"
	"github.com/celset/celset/test/internal/render"
)

// portFlags maps the name of a program and the name of a container port to the flag that sets the port.
var portFlags = map[string]map[string]string{
	"celset-scheduler":       {"https": "secure-port"},
	"celset-placement":       {"health": "health-probe-bind-address", "metrics": "metrics-bind-address"},
	"celset-webhook":         {"probes": "health-probe-bind-address", "metrics": "metrics-bind-address", "webhook": "webhook-bind-address"},
	"celset-topology-driver": {"health": "health-probe-bind-address", "metrics": "metrics-bind-address"},
}

// served maps the name of a port to the paths and schemes of its probes. An empty scheme means HTTP, the kubelet's default.
var served = map[string]map[string]corev1.URIScheme{
	"https":  {"/livez": corev1.URISchemeHTTPS, "/readyz": corev1.URISchemeHTTPS},
	"probes": {"/healthz": "", "/readyz": ""}, "health": {"/healthz": "", "/readyz": ""},
}

// TestPortsAreThoseOfThePrograms compares the ports of each container with the program's flags in the arguments, or with the
// flags' defaults. It also checks that probes use these ports.
func TestPortsAreThoseOfThePrograms(t *testing.T) {
	output, err := helm.Run(t, "template", "celset", helm.Chart(t), "--kube-version=1.37.2",
		"--set=image.registry=registry.example.com/celset,placement.enabled=true,webhook.enabled=true,topologyDriver.enabled=true")
	require.NoError(t, err, output)
	objects, err := render.Decode([]byte(output))
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "Deployment" && kind != "DaemonSet" {
			continue
		}
		var workload struct {
			Spec struct {
				Template corev1.PodTemplateSpec `json:"template"`
			} `json:"spec"`
		}
		require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &workload))
		require.Len(t, workload.Spec.Template.Spec.Containers, 1)
		container := workload.Spec.Template.Spec.Containers[0]
		seen[container.Name] = true
		t.Run(container.Name, func(t *testing.T) { requirePorts(t, &container) })
	}
	require.Len(t, seen, len(portFlags))
}

func requirePorts(t *testing.T, container *corev1.Container) {
	flags, help := portFlags[container.Name], helpOf(t, container.Name)
	require.Len(t, container.Ports, len(flags))
	for _, port := range container.Ports {
		flag := flags[port.Name]
		require.NotEmpty(t, flag, port.Name)
		byDefault := regexp.MustCompile(`(?m)^ +--` + flag + ` .*\(default "?:?(\d+)"?\)$`).FindStringSubmatch(help)
		require.NotNil(t, byDefault, flag)
		value := byDefault[1]
		for _, arg := range container.Args {
			if given, found := strings.CutPrefix(arg, "--"+flag+"="); found {
				value = given[strings.LastIndex(given, ":")+1:]
			}
		}
		require.Equal(t, value, strconv.Itoa(int(port.ContainerPort)), port.Name)
	}
	for _, probe := range []*corev1.Probe{container.LivenessProbe, container.ReadinessProbe, container.StartupProbe} {
		if probe == nil {
			continue
		}
		scheme, known := served[probe.HTTPGet.Port.StrVal][probe.HTTPGet.Path]
		require.True(t, known, "%s at %s", probe.HTTPGet.Path, probe.HTTPGet.Port.StrVal)
		require.Equal(t, scheme, probe.HTTPGet.Scheme)
		require.Contains(t, flags, probe.HTTPGet.Port.StrVal)
	}
	require.NotNil(t, container.LivenessProbe)
	require.NotNil(t, container.ReadinessProbe)
}

// helpOf returns the help text of a program's flags.
func helpOf(t *testing.T, program string) string {
	t.Helper()
	output, err := exec.CommandContext(t.Context(), env.Program(t, program), "--help").CombinedOutput()
	require.NoError(t, err)
	return string(output)
}
