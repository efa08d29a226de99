// Copyright The celset Authors.
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
)

// policyOf returns the NetworkPolicy that selects the pods of the program.
func policyOf(t *testing.T, objects []*unstructured.Unstructured, program string) *networkingv1.NetworkPolicy {
	t.Helper()
	var policy networkingv1.NetworkPolicy
	require.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(find(t, objects, "NetworkPolicy", program).Object, &policy, true))
	return &policy
}

// TestNetworkPoliciesNameAllPorts checks that the NetworkPolicy of a program selects its pods and allows all ports, except
// ports that only the kubelet uses. The metrics port is allowed for Prometheus.
func TestNetworkPoliciesNameAllPorts(t *testing.T) {
	for folder, of := range watched {
		t.Run(folder, func(t *testing.T) {
			objects := rendered(t, of.program)
			policy := policyOf(t, objects, "celset-"+folder)
			selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
			require.NoError(t, err)
			var ports []string
			for _, object := range objects {
				podLabels, found, err := unstructured.NestedStringMap(object.Object, "spec", "template", "metadata", "labels")
				require.NoError(t, err)
				if found {
					require.True(t, selector.Matches(labels.Set(podLabels)))
					require.Equal(t, object.GetNamespace(), policy.Namespace)
					ports = append(ports, portsOf(t, object)...)
				}
			}
			var admitted []string
			for _, rule := range policy.Spec.Ingress {
				require.Len(t, rule.Ports, 1)
				port := rule.Ports[0].Port.String()
				admitted = append(admitted, port)
				require.Equal(t, port == "webhook", len(rule.From) == 0)
			}
			ports = slices.DeleteFunc(ports, func(port string) bool { return port == "health" || port == "probes" })
			slices.Sort(ports)
			slices.Sort(admitted)
			require.Equal(t, ports, admitted)
		})
	}
}

func TestNetworkPoliciesOfTheChart(t *testing.T) {
	every := []string{"placement.enabled=true", "webhook.enabled=true", "topologyDriver.enabled=true"}
	for _, object := range template(t, append(every, "networkPolicy.enabled=false")...) {
		require.NotEqual(t, "NetworkPolicy", object.GetKind())
	}
	objects := template(t, append(every, "networkPolicy.metricsNamespaces={a,b}", "networkPolicy.apiServers={10.0.0.0/28,fd00::/64}", "networkPolicy.pods={10.244.0.0/16}")...)
	for folder := range watched {
		rules := policyOf(t, objects, "celset-"+folder).Spec.Ingress
		require.Equal(t, []string{"a", "b"}, rules[len(rules)-1].From[0].NamespaceSelector.MatchExpressions[0].Values)
	}
	block := func(cidr string, except ...string) networkingv1.NetworkPolicyPeer {
		return networkingv1.NetworkPolicyPeer{IPBlock: &networkingv1.IPBlock{CIDR: cidr, Except: except}}
	}
	require.Equal(t, []networkingv1.NetworkPolicyPeer{block("10.0.0.0/28"), block("fd00::/64")}, policyOf(t, objects, "celset-webhook").Spec.Ingress[0].From)
	objects = template(t, "webhook.enabled=true", "networkPolicy.pods={10.244.0.0/16,10.245.0.0/16}")
	require.Equal(t, []networkingv1.NetworkPolicyPeer{block("0.0.0.0/0", "10.244.0.0/16", "10.245.0.0/16"), block("::/0")},
		policyOf(t, objects, "celset-webhook").Spec.Ingress[0].From)
	server(t).dryRun(t, objects)
}
